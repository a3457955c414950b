/* Steps 3 to 6 of a commit (src/publish/README.md) for three clients and a visitor, checked in every order.
 *
 * A revision is the set of contents that it holds, as bits; head is the number of a revision. Each client posts a
 * revision of its own based on the root, then reads the log. If there are several tips, it posts their merge. If there
 * is one, it reads head, moves it there if it is elsewhere, and reads again. Each request is a separate step, so
 * anything may happen between two of them. A client may stop for good at any point. Once in its life its PATCH may be
 * lost, or arrive late, but before the visitor comes. Merges do not conflict here: conflicts are left to the simulator.
 *
 * Claims: no client knowingly drops anything. A client that reports success has its revision in head's line. If no
 * client stopped and no PATCH was lost or late, head ends up holding everything; otherwise one visitor gets it there,
 * within a few rounds.
 *
 * Each of -DNO_REREAD (PATCH what was posted, without reading the log), -DNO_VERIFY (stop after the PATCH) and
 * -DSHORT_SCAN (read only the newest part of the log) breaks the protocol, and must violate a claim.
 */
#define CLIENTS 3
#define MOST 9

byte content[MOST];  /* by number, in the order of the log; 0 is the root, which all contain */
byte posted = 1;
byte head = 0;
byte ended = 0;
byte first = 0;     /* the client that posts next */
byte late[1];        /* the revision that a late PATCH will set; 0: none is under way */
byte everything = 0; /* all that was ever posted */
bool calm = true;    /* no client stopped, no PATCH was lost or late */

#ifdef SHORT_SCAN
#define OLDEST_READ (posted - 1)
#else
#define OLDEST_READ 0
#endif

inline post(mask) {
  atomic {
    assert(posted < MOST);
    content[posted] = mask;
    everything = everything | mask;
    posted++
  }
}

/* The union of all, and the first revision that contains it; MOST if none does. Atomic, like reading a page. */
inline scan(all, tip) {
  d_step {
    all = 0;
    tip = MOST;
    k = OLDEST_READ;
    do
    :: k < posted -> all = all | content[k]; k++
    :: else -> break
    od;
    k = 0;
    do
    :: k < posted && tip == MOST -> if :: content[k] == all -> tip = k :: else -> skip fi; k++
    :: else -> break
    od;
    k = 0
  }
}

proctype Client(byte me) {
  byte all, tip, k, seen;
  bool unlucky;
  first == me; /* clients are interchangeable, so one order of posting is enough */
  atomic { post(1 << me); first++ }
again:
  atomic {
    if
    :: calm = false; goto stop /* for good */
    :: skip
    fi;
    seen = head /* requested together with the log: at worst it is older */
  };
#ifdef NO_REREAD
  atomic { tip = 0; do :: content[tip] == (1 << me) -> break :: else -> tip++ od; seen = tip };
  if :: head == tip -> goto stop :: else -> skip fi;
#else
  scan(all, tip);
#endif
  if
  :: tip == MOST -> post(all); d_step { all = 0; tip = 0; seen = 0 }; goto again
  :: else -> all = 0
  fi;
#ifndef NO_REREAD
  if
  :: seen == tip -> /* verified as far as this client can tell: its own is in it */
     assert((content[tip] & (1 << me)) != 0);
     goto stop
  :: else -> skip
  fi;
#endif
  assert((content[seen] & ~content[tip]) == 0); /* no known content is dropped */
  atomic {
    if
    :: head = tip                                                      /* whether or not the response arrives */
    :: !unlucky -> unlucky = true; calm = false                        /* lost */
    :: !unlucky && late[0] == 0 -> unlucky = true; calm = false; late[0] = tip /* delayed */
    fi;
    tip = 0;
    seen = 0
  }
#ifndef NO_VERIFY
  goto again;
#endif
stop:
  ended++
}

proctype Late(byte whose) {
  do
  :: atomic { late[whose] != 0 -> head = late[whose]; late[whose] = 0 }
  :: ended == CLIENTS && late[whose] == 0 -> break
  od
}

/* Starts when all others have ended and nothing is under way. */
active proctype Visitor() {
  byte all, tip, k, i, rounds;
  atomic {
    do
    :: i < CLIENTS -> run Client(i); i++
    :: else -> break
    od;
    run Late(0)
  }
  ended == CLIENTS && late[0] == 0;
  assert(!calm || content[head] == everything);
again:
  assert(rounds < 4);
  rounds++;
  scan(all, tip);
  if
  :: tip == MOST -> post(all); goto again
  :: else -> skip
  fi;
  if
  :: head != tip -> head = tip; goto again
  :: else -> skip
  fi;
  assert(content[head] == everything)
}
