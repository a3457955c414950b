/* Steps 3 to 6 of a commit (src/publish/README.md) for three clients and a visitor, checked in every order.
 *
 * A revision is the set of contents it holds, as bits; head is a number of a revision. Each client posts a revision of
 * its own on the root, then: read the log; several tips: post their merge; one tip: read head, move it there if it is
 * elsewhere, read again. Each request is a step of its own, so that everything may happen between any two. A client may
 * stop for good at any point. Once in its life its PATCH may be lost, or arrive late, up to when the visitor comes.
 * Merges do not conflict here: what is left out is the simulator's.
 *
 * Claims: nobody knowingly drops anything; whoever says that it is done has its own in head's line; where nobody stopped
 * and no PATCH went astray, head ends up holding everything; where that did happen, one visitor brings it there, in few
 * rounds.
 *
 * Each of -DNO_REREAD (PATCH what was posted, without reading the log), -DNO_VERIFY (stop after the PATCH) and
 * -DSHORT_SCAN (of the log only the newest) breaks the protocol, and has to break a claim.
 */
#define CLIENTS 3
#define MOST 9

byte content[MOST];  /* by number, in the order of the log; 0 is the root, which all hold */
byte posted = 1;
byte head = 0;
byte ended = 0;
byte first = 0;     /* who posts next */
byte late[1];        /* the revision that a late PATCH will set; 0: none is under way */
byte everything = 0; /* all that was ever posted */
bool calm = true;    /* nobody stopped, no PATCH went astray */

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

/* The union of all, and the first that holds as much; MOST where none does. Seen at one instant, as a page is. */
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
  first == me; /* clients are alike: by their names the order in which they come can be told */
  atomic { post(1 << me); first++ }
again:
  atomic {
    if
    :: calm = false; goto stop /* for good */
    :: skip
    fi;
    seen = head /* asked for together with the log: at worst it is the older of the two */
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
  :: seen == tip -> /* verified, so far as this client can tell: its own is in it */
     assert((content[tip] & (1 << me)) != 0);
     goto stop
  :: else -> skip
  fi;
#endif
  assert((content[seen] & ~content[tip]) == 0); /* nothing known is dropped */
  atomic {
    if
    :: head = tip                                                      /* whether or not the reply comes */
    :: !unlucky -> unlucky = true; calm = false                        /* lost */
    :: !unlucky && late[0] == 0 -> unlucky = true; calm = false; late[0] = tip /* under way for long */
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

/* Comes when all others have ended, and nothing is under way any more. */
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
