"""File system users: processes that make system calls under given credentials and report the errno.

An Actor is a child process with its own credentials and umask. Each call names one of the functions below; its answer
is the function's result or the name of the errno.
"""
import ctypes
import errno
import os
import pickle
import select
import signal
import socket
import stat
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
UTIME_NOW, UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2
AT_FDCWD, AT_SYMLINK_NOFOLLOW = -100, 0x100
STATX_MODE = 2
NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4
KINDS = {stat.S_IFREG: 'file', stat.S_IFDIR: 'dir', stat.S_IFIFO: 'fifo', stat.S_IFSOCK: 'socket',
         stat.S_IFLNK: 'symlink', stat.S_IFCHR: 'char', stat.S_IFBLK: 'block'}


class Timespec(ctypes.Structure):
    _fields_ = [('seconds', ctypes.c_int64), ('nanoseconds', ctypes.c_long)]


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), 'libc')
    return result


def open_close(path, flags, mode=0o644):
    os.close(os.open(path, flags, mode))


def create(path, mode=0o644):
    open_close(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)


def bind(path):
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(path)


def make(kind, path):
    """Creates one file of the given kind."""
    if kind == 'file':
        create(path)
    elif kind == 'dir':
        os.mkdir(path, 0o755)
    elif kind == 'fifo':
        os.mkfifo(path, 0o644)
    elif kind == 'socket':
        bind(path)
    elif kind == 'symlink':
        os.symlink('nowhere', path)
    else:
        os.mknod(path, 0o644 | (stat.S_IFCHR if kind == 'char' else stat.S_IFBLK), os.makedev(1, 3))


def remove(path):
    os.rmdir(path) if stat.S_ISDIR(os.lstat(path).st_mode) else os.unlink(path)


def write(path, data, offset=0):
    fd = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(fd, data, offset)
    finally:
        os.close(fd)


def read(path):
    with open(path, 'rb') as file:
        return file.read()


def utimens(path, atime, mtime, follow=True):
    """Sets times, each as (seconds, nanoseconds), UTIME_NOW or UTIME_OMIT. None for both at once: now."""
    times = None
    if atime is not None:
        times = (Timespec * 2)(*(time if isinstance(time, tuple) else (0, time) for time in (atime, mtime)))
    checked(LIBC.utimensat(AT_FDCWD, os.fsencode(path), times, 0 if follow else AT_SYMLINK_NOFOLLOW))


def rename2(old, new, flags):
    checked(LIBC.renameat2(AT_FDCWD, os.fsencode(old), AT_FDCWD, os.fsencode(new), flags))


def fallocate(path, mode, offset, length):
    fd = os.open(path, os.O_RDWR)
    try:
        checked(LIBC.fallocate(fd, mode, ctypes.c_int64(offset), ctypes.c_int64(length)))
    finally:
        os.close(fd)


SLOTS = {}  # descriptors that stay open between calls


def open_slot(slot, path):
    close_slot(slot, missing_ok=True)
    SLOTS[slot] = os.open(path, os.O_RDWR)


def descriptor(slot):
    if slot not in SLOTS:
        raise OSError(errno.EBADF, 'nothing is open')
    return SLOTS[slot]


def close_slot(slot, missing_ok=False):
    if slot in SLOTS or not missing_ok:
        os.close(descriptor(slot))
        del SLOTS[slot]


def close_slots():
    """Closes all, including those that a dead mount left behind."""
    for slot in list(SLOTS):
        try:
            close_slot(slot)
        except OSError:
            del SLOTS[slot]


def write_slot(slot, data, offset):
    os.pwrite(descriptor(slot), data, offset)


def truncate_slot(slot, size):
    os.ftruncate(descriptor(slot), size)


def read_slot(slot):
    """Content and link count."""
    found = os.fstat(descriptor(slot))
    return os.pread(descriptor(slot), found.st_size + 1, 0), found.st_nlink


def status(path, *names):
    """lstat(2) fields by name: kind, mode (12 bits), uid, gid, nlink, size, times in ns."""
    found = os.lstat(path)
    values = {'kind': KINDS[stat.S_IFMT(found.st_mode)], 'mode': stat.S_IMODE(found.st_mode), 'uid': found.st_uid,
              'gid': found.st_gid, 'nlink': found.st_nlink, 'size': found.st_size, 'ino': found.st_ino,
              'rdev': found.st_rdev, 'atime': found.st_atime_ns, 'mtime': found.st_mtime_ns,
              'ctime': found.st_ctime_ns, 'blocks': found.st_blocks}
    return tuple(values[name] for name in names) if len(names) > 1 else values[names[0]]


def mode(path):
    """The 12 mode bits, requested alone, as `stat -c %a` does: the kernel need not refresh stale attributes then."""
    found = ctypes.create_string_buffer(256)
    checked(LIBC.statx(AT_FDCWD, os.fsencode(path), AT_SYMLINK_NOFOLLOW, STATX_MODE, found))
    return stat.S_IMODE(int.from_bytes(found[28:30], sys.byteorder))


def link(old, new):
    """Of a symbolic link itself; Python 3.14 follows it by default."""
    os.link(old, new, follow_symlinks=False)


def copy_range(source, path, size):
    """Copies the first `size` bytes of one file over those of another, inside the kernel."""
    with open(source, 'rb') as old, open(path, 'r+b') as new:
        os.copy_file_range(old.fileno(), new.fileno(), size)


CALLS = {each.__name__: each for each in (
    os.mkdir, os.rmdir, os.unlink, link, os.symlink, os.rename, os.mkfifo, os.mknod, os.truncate, os.chmod, os.chown,
    os.lchown, os.listdir, os.readlink, os.access, os.umask, open_close, create, bind, make, remove, write, read,
    utimens, rename2, fallocate, status, mode, copy_range,
    open_slot, close_slot, close_slots, write_slot, truncate_slot, read_slot)}


class Actor:
    def __init__(self, directory, uid=0, gid=0, groups=(), umask=0):
        here, there = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                here.close()
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                os.chdir(directory)
                if os.getuid() == 0:  # only root can change credentials
                    os.setgroups(groups)
                    os.setresgid(gid, gid, gid)
                    os.setresuid(uid, uid, uid)
                os.umask(umask)
                self._serve(there)
            finally:
                os._exit(1)
        there.close()
        self.socket, self.stream = here, here.makefile('rwb')

    @staticmethod
    def _serve(end):
        stream = end.makefile('rwb')
        while True:
            try:
                name, words = pickle.load(stream)
            except EOFError:
                os._exit(0)
            try:
                answer = CALLS[name](*words)
            except OSError as problem:
                answer = errno.errorcode.get(problem.errno, str(problem))
            pickle.dump(answer, stream)
            stream.flush()

    def __call__(self, name, *words):
        """Runs one call: its result (None for most), or the name of its errno."""
        self.begin(name, *words)
        return self.answer()

    # The same in two steps, for a call that may take long; one at a time.

    def begin(self, name, *words):
        pickle.dump((name, words), self.stream)
        self.stream.flush()

    def has_answered(self, seconds):
        """Whether the answer arrives within that time."""
        return bool(select.select([self.socket], [], [], max(0, seconds))[0])

    def answer(self):
        return pickle.load(self.stream)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def end(self):
        try:
            self.stream.close()
        except BrokenPipeError:
            pass  # it never reads its last request
        self.socket.close()
        os.waitpid(self.pid, 0)


def end_all(actors, sites):
    """Ends the sites while nothing of the actors keeps a mount busy."""
    for each in actors:
        each.kill()
    for each in sites:
        each.end()
    for each in reversed(actors):
        each.end()
