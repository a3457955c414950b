/* playfs: the ioctls of a mounted work tree.
 *
 * They work on any open file or directory inside a project's work/. Structs have a fixed size; zero them, then set
 * `size` and `version`. Every call needs write permission on the work tree's root.
 *
 * A failing call returns -1 with errno, and still returns its struct: `error` says why the call failed and what to do
 * next. `error.code` stays empty if the kernel or another version of playfs refused the call.
 *
 *   struct playfs_commit c = {.size = sizeof c, .version = PLAYFS_IOCTL_VERSION};
 *   strcpy(c.message, "Fix the parser");
 *   if (ioctl(fd, PLAYFS_IOC_COMMIT, &c) != 0) puts(*c.error.code ? c.error.message : strerror(errno));
 *   else if (c.outcome == PLAYFS_PUBLISHED) puts(c.revision);
 *
 * Errors (errno): EINVAL wrong size, version or flags, or text that is not terminated or not UTF-8; EACCES no
 * permission, or the service forbids it; EBUSY unresolved conflicts in the work tree; EFBIG more than the service can
 * store, nothing was sent; EAGAIN rate limited (only with PLAYFS_COMMIT_NOWAIT); EHOSTUNREACH, ETIMEDOUT the service is
 * unreachable; EINTR interrupted, publishing continues in the background; ENOENT no such path or revision; ENOTTY not
 * inside a work tree, or the mount runs another version of playfs.
 */
#ifndef PLAYFS_IOCTL_H
#define PLAYFS_IOCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLAYFS_IOCTL_VERSION 1

#define PLAYFS_ID_MAX 208       /* bytes of an id with its NUL */
#define PLAYFS_TX_MAX 40        /* bytes of a commit's transaction id with its NUL */
#define PLAYFS_AGENT_MAX 128    /* bytes of an agent's handle with its NUL */
#define PLAYFS_MESSAGE_MAX 4096 /* bytes of a message with its NUL */

#define PLAYFS_PATH_MAX 4096 /* bytes of a path with its NUL */

/* Why a call failed. Text is UTF-8, truncated to fit, and safe to print: parts that came from the service have their
 * control characters escaped. Ids in the other structs are as the service sent them. */
struct playfs_error {
  char code[32];       /* stable name, as in `--json` output: "busy"; empty: no reason was returned */
  char message[1024];  /* what failed and why, one line */
  char hint[480];      /* what to do or type next, one line; may be empty */
  __u32 retryable;     /* 1: the same call may succeed later without any change */
  __u32 retry_after_s; /* seconds after which to retry; 0: unknown */
};

enum playfs_outcome {
  PLAYFS_PUBLISHED = 1, /* the revision is head */
  PLAYFS_MERGED = 2,    /* the revision is an ancestor of head, merged automatically */
  PLAYFS_BRANCHED = 3,  /* published as a branch beside head: update, then commit the merge */
  PLAYFS_PENDING = 4,   /* journalled; publishing continues in the background */
  PLAYFS_NOTHING = 5,   /* nothing was staged */
  PLAYFS_PLANNED = 6,   /* PLAYFS_COMMIT_DRY_RUN: see writes_used and chunks_total for the cost */
  PLAYFS_CANCELLED = 7  /* PLAYFS_IOC_CANCEL came before it was sent; its changes are staged again */
};

/* playfs_commit.flags */
#define PLAYFS_COMMIT_NOWAIT 1u   /* return PLAYFS_PENDING as soon as the change is frozen */
#define PLAYFS_COMMIT_NO_MERGE 2u /* if head has moved, publish a branch; another client may merge it later */
#define PLAYFS_COMMIT_RESOLVED 4u /* conflicts left by an update are resolved as they are */
#define PLAYFS_COMMIT_DRY_RUN 8u  /* plan only, send nothing */
/* Start nothing: report the outcome of the commit named by `tx`, waiting for it unless PLAYFS_COMMIT_NOWAIT is set. For
 * use after PLAYFS_PENDING, with the returned struct. ENOENT: the commit is unknown or no longer known. */
#define PLAYFS_COMMIT_AGAIN 16u

struct playfs_commit {
  /* in */
  __u32 size;    /* sizeof(struct playfs_commit) */
  __u32 version; /* PLAYFS_IOCTL_VERSION */
  __u32 flags;
  __u32 reserved0;
  char agent[PLAYFS_AGENT_MAX]; /* empty: the mount's default */
  char message[PLAYFS_MESSAGE_MAX];
  /* out */
  __u32 outcome; /* enum playfs_outcome */
  __u32 files_changed;
  __u32 writes_used; /* POST and PATCH requests sent */
  __u32 chunks_done;
  __u32 chunks_total;
  __u32 retry_after_s; /* PENDING on a rate limit: seconds until publishing continues */
  char revision[PLAYFS_ID_MAX];
  char merged_revision[PLAYFS_ID_MAX]; /* MERGED: the merge revision that is head */
  struct playfs_error error;
  char tx[PLAYFS_TX_MAX]; /* the commit; as input only for PLAYFS_COMMIT_AGAIN */
  __u64 reserved[3];
};

/* playfs_status.phase */
enum playfs_phase {
  PLAYFS_PHASE_IDLE = 0,
  PLAYFS_PHASE_FREEZING = 1,
  PLAYFS_PHASE_PLANNING = 2,
  PLAYFS_PHASE_UPLOADING = 3,
  PLAYFS_PHASE_POSTING = 4,
  PLAYFS_PHASE_VERIFYING = 5
};

struct playfs_status {
  /* in */
  __u32 size;
  __u32 version;
  /* out */
  char project[PLAYFS_ID_MAX];
  char base[PLAYFS_ID_MAX]; /* the revision that the work tree is based on; empty: none yet */
  char head[PLAYFS_ID_MAX]; /* the published latest, as last seen */
  __u32 staged;             /* paths */
  __u32 pending;            /* paths being published */
  __u32 conflicts;          /* paths that an update left in conflict */
  __u32 phase;              /* enum playfs_phase */
  __u32 chunks_done;
  __u32 chunks_total;
  __u32 retry_after_s;
  __u32 seconds_left; /* estimate until the chunks are uploaded; 0: unknown, or no upload */
  __u64 bytes_done;   /* of the chunks' text, during an upload */
  __u64 bytes_total;
  __u32 queued; /* commits waiting behind the current one */
  __u32 reserved0;
  struct playfs_error error;
  __u64 reserved[5];
};

/* playfs_discard.flags */
#define PLAYFS_DISCARD_DRY_RUN 1u /* change nothing: report success and the number of paths it would drop */
#define PLAYFS_DISCARD_LIST 2u    /* `path` has several paths, each ended by a NUL, the last by two */

/* Drops the staged changes at and below `path`: a file, a link, a directory, or a deletion. What was staged is kept in
 * a checkpoint first. A failing call changes nothing: EBUSY some of them are being published; ENOENT nothing exists or
 * is staged there; EINVAL not a work tree path; ENOSPC no room for the checkpoint's list. */
struct playfs_discard {
  __u32 size;
  __u32 version;
  __u32 flags;
  __u32 discarded; /* out: paths */
  /* in: relative to the root of work/, whichever file the call is made on: "src/main.c", without ".", ".." or a leading
   * or trailing slash. "." is the root: everything staged. Empty: the file or directory that the call is made on. Of a
   * list all paths are dropped at once, or none is. out: those of the list at or below which something was. */
  char path[PLAYFS_PATH_MAX];
  struct playfs_error error;
  /* out: the checkpoint that has what was dropped; 0: nothing was. in: 0, or one that an earlier call returned: if it
   * has all that is to be dropped, no other one is made, so that dropping several paths makes one checkpoint. */
  __u64 checkpoint;
  __u64 reserved[3];
};

#define PLAYFS_CHECKPOINT_DROP 1u /* drop the checkpoint `id` instead, which frees the space of what it alone has */

/* Keeps what is staged in a checkpoint on this machine. Ignored files are not part of it, and it is never published. It
 * is kept until there are 100 newer ones, or for 30 days. Errors: ENOENT there is no checkpoint `id` to drop. */
struct playfs_checkpoint {
  __u32 size;
  __u32 version;
  __u32 flags;
  __u32 reserved0;
  char message[PLAYFS_MESSAGE_MAX]; /* in: what it is for; may be empty */
  __u64 id;                         /* out: 1, 2, 3, ...; 0: nothing was staged. in: of the one to drop */
  __u64 paths;                      /* out */
  struct playfs_error error;
  __u64 reserved[4];
};

#define PLAYFS_PATHS_MAX 8192 /* bytes of several paths, each with its NUL, and one more */

/* Stages what a checkpoint has, and drops what it has not; what was staged before is kept in another checkpoint. A
 * failing call changes nothing: EBUSY something is being published, or a local-only file is in the way; ENOENT no such
 * checkpoint, or nothing at a path; EIO the checkpoint is damaged. */
struct playfs_restore {
  __u32 size;
  __u32 version;
  __u32 flags;     /* 0 */
  __u32 restored;  /* out: paths that were not as in the checkpoint */
  __u64 id;        /* in */
  __u64 before;    /* out: the checkpoint of what was staged before; 0: nothing was */
  __u32 conflicts; /* out: paths in conflict */
  __u32 reserved0;
  char base_then[PLAYFS_ID_MAX]; /* out: the revision that the checkpoint was staged on */
  char base_now[PLAYFS_ID_MAX];  /* out: the one that it is staged on now */
  /* in: only what is at and below these paths, as in playfs_discard, each ended by a NUL, the last by two. Empty: all.
   */
  char paths[PLAYFS_PATHS_MAX];
  struct playfs_error error;
  __u64 reserved[4];
};

/* Moves the base of the work tree to head, merging the staged changes. */
struct playfs_update {
  __u32 size;
  __u32 version;
  __u32 flags;              /* 0 */
  __u32 conflicts;          /* out: paths in conflict */
  char base[PLAYFS_ID_MAX]; /* out: the new base */
  struct playfs_error error;
  __u64 reserved[4];
};

/* Merges another revision of the project into the work tree, which must be clean. The next commit publishes the merge
 * of both. */
struct playfs_merge {
  __u32 size;
  __u32 version;
  __u32 flags;                  /* 0 */
  __u32 conflicts;              /* out: paths in conflict */
  char revision[PLAYFS_ID_MAX]; /* in */
  char base[PLAYFS_ID_MAX];     /* out: the base of the work tree, unchanged */
  struct playfs_error error;
  __u64 reserved[4];
};

/* Cancels commits that are being published or waiting to be: their changes are staged again, and nothing more is sent.
 * A commit whose revision may already have been sent is not cancelled. */
struct playfs_cancel {
  __u32 size;
  __u32 version;
  __u32 flags;     /* 0 */
  __u32 cancelled; /* out: commits that will not be published */
  __u32 too_late;  /* out: 1 if one had already been sent, and continues */
  __u32 reserved0;
  struct playfs_error error;
  __u64 reserved[4];
};

#define PLAYFS_IOC_COMMIT _IOWR('P', 0x70, struct playfs_commit)
#define PLAYFS_IOC_STATUS _IOWR('P', 0x71, struct playfs_status)
#define PLAYFS_IOC_DISCARD _IOWR('P', 0x72, struct playfs_discard)
#define PLAYFS_IOC_UPDATE _IOWR('P', 0x73, struct playfs_update)
#define PLAYFS_IOC_MERGE _IOWR('P', 0x74, struct playfs_merge)
#define PLAYFS_IOC_CANCEL _IOWR('P', 0x75, struct playfs_cancel)
#define PLAYFS_IOC_CHECKPOINT _IOWR('P', 0x76, struct playfs_checkpoint)
#define PLAYFS_IOC_RESTORE _IOWR('P', 0x77, struct playfs_restore)

#ifdef __cplusplus
}
#endif

#endif
