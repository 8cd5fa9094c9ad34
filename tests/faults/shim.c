/* An LD_PRELOAD shim between Quipu and the file system.
 *
 * It watches the files below the directories in QUIPU_FAULT_SHIM_ROOTS (absolute, separated by colons) and
 * does one or both of these:
 *
 * - QUIPU_FAULT_SHIM_LOG names a file to which every change is appended: writes with their bytes, truncations,
 *   creations, renames, removals, syncs. A call and its record are one step under a lock that all
 *   processes share, so the order of the records is the order of the changes. `recording.py` reads them.
 * - QUIPU_FAULT_SHIM_CONTROL names a file that is mapped into every process. `control.py` arms it at any moment:
 *   the n-th call of some kinds fails, once or from then on.
 *
 * Only calls through the C library are seen. `recording.py` proves that none was missed by comparing what
 * it rebuilds with what is on the disk.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* The kinds of calls, as in `control.py`. */
enum { OPEN, READ, WRITE, SYNC, TRUNCATE, MAP, RENAME, UNLINK, FLOCK, FCNTL, STAT, KINDS };

struct control {
    uint32_t kinds;    /* a bit for each kind that fails */
    uint32_t error;    /* the errno to fail with */
    uint32_t sticky;   /* whether all further calls fail too */
    uint32_t reserved;
    int64_t left;      /* calls until the first failure; below zero: disarmed */
    uint64_t failures; /* how many calls have failed */
    uint64_t counts[KINDS];
};

/* One record: this, then the path, then the second path or the bytes that were written. */
struct record {
    uint32_t size;
    uint8_t what;
    uint8_t reserved[3];
    uint64_t inode;
    int64_t offset;
    uint32_t path_size;
    uint32_t pid;
};

static struct control *control;
static int log_fd = -1;
static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;
static char roots[PATH_MAX * 2];

/* What a descriptor refers to; bounded, since descriptors of tests are few. */
#define DESCRIPTORS 65536
static struct watched { uint64_t inode; char is_watched, is_directory; } watched[DESCRIPTORS];

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int is_below_roots(const char *path) {
    for (const char *root = roots; path && *root; ) {
        size_t size = strcspn(root, ":");
        if (size && strncmp(path, root, size) == 0 && (path[size] == '/' || path[size] == 0)) return 1;
        root += size + (root[size] == ':');
    }
    return 0;
}

static struct watched *watched_at(int fd) {
    return fd >= 0 && fd < DESCRIPTORS && watched[fd].is_watched ? &watched[fd] : NULL;
}

/* Returns whether this call is to fail, with errno set. */
static int is_faulty(int kind) {
    if (!control) return 0;
    __atomic_add_fetch(&control->counts[kind], 1, __ATOMIC_SEQ_CST);
    if (!(__atomic_load_n(&control->kinds, __ATOMIC_SEQ_CST) >> kind & 1)) return 0;
    if (__atomic_load_n(&control->left, __ATOMIC_SEQ_CST) < 0) return 0;
    int64_t left = __atomic_sub_fetch(&control->left, 1, __ATOMIC_SEQ_CST);
    if (left > 0 || (left < 0 && !control->sticky)) return 0;
    if (control->sticky) __atomic_store_n(&control->left, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&control->failures, 1, __ATOMIC_SEQ_CST);
    errno = (int)control->error;
    return 1;
}

/* Between these two, no other process or thread changes a watched file. */
static void begin(void) {
    if (log_fd < 0) return;
    REAL(flock);
    pthread_mutex_lock(&log_mutex);
    while (real(log_fd, LOCK_EX) != 0 && errno == EINTR) {}
}

static void end(void) {
    if (log_fd < 0) return;
    REAL(flock);
    int error = errno;
    real(log_fd, LOCK_UN);
    pthread_mutex_unlock(&log_mutex);
    errno = error;
}

static void note(char what, uint64_t inode, int64_t offset, const char *path, const void *rest, size_t rest_size) {
    if (log_fd < 0) return;
    REAL(writev);
    int error = errno;
    size_t path_size = path ? strlen(path) : 0;
    struct record record = {
        .size = (uint32_t)(sizeof record + path_size + rest_size), .what = (uint8_t)what, .inode = inode,
        .offset = offset, .path_size = (uint32_t)path_size, .pid = (uint32_t)getpid(),
    };
    struct iovec parts[3] = {{&record, sizeof record}, {(void *)path, path_size}, {(void *)rest, rest_size}};
    if (real(log_fd, parts, 3) != (ssize_t)record.size) {
        /* A recording with holes would prove nothing. */
        dprintf(2, "shim: the recording cannot be written\n");
        abort();
    }
    errno = error;
}

__attribute__((constructor)) static void start(void) {
    REAL(open64);
    const char *names[] = {getenv("QUIPU_FAULT_SHIM_ROOTS"), getenv("QUIPU_FAULT_SHIM_LOG"), getenv("QUIPU_FAULT_SHIM_CONTROL")};
    if (names[0]) snprintf(roots, sizeof roots, "%s", names[0]);
    if (names[1]) log_fd = real(names[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (names[2]) {
        int fd = real(names[2], O_RDWR | O_CLOEXEC);
        void *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (mapped != MAP_FAILED) control = mapped;
        close(fd);
    }
}

/* ---- Opening and closing ---- */

static void watch(int fd) {
    struct stat64 found;
    REAL(fstat64);
    if (fd < 0 || fd >= DESCRIPTORS || real(fd, &found) != 0) return;
    watched[fd].inode = found.st_ino;
    watched[fd].is_directory = S_ISDIR(found.st_mode);
    watched[fd].is_watched = 1;
}

static int opened(int (*real)(int, const char *, int, ...), int at, const char *path, int flags, mode_t mode) {
    if (!is_below_roots(path)) return real(at, path, flags, mode);
    if (is_faulty(OPEN)) return -1;
    begin();
    int fd = real(at, path, flags, mode);
    if (fd >= 0) {
        watch(fd);
        if (flags & O_CREAT) note('c', watched[fd].inode, 0, path, NULL, 0);
        if (flags & O_TRUNC) note('t', watched[fd].inode, 0, NULL, NULL, 0);
    }
    end();
    return fd;
}

static mode_t mode_of(int flags, va_list rest) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
}

#define OPENING(name, at_parameter, at) \
    int name(at_parameter const char *path, int flags, ...) { \
        REAL(openat64); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = mode_of(flags, rest); \
        va_end(rest); \
        return opened(real, at, path, flags, mode); \
    }
#define AT_PARAMETER int directory,
#define NO_PARAMETER
OPENING(open, NO_PARAMETER, AT_FDCWD)
OPENING(open64, NO_PARAMETER, AT_FDCWD)
OPENING(openat, AT_PARAMETER, directory)
OPENING(openat64, AT_PARAMETER, directory)

int close(int fd) {
    REAL(close);
    /* First, since another thread may get the same number as soon as it is free. */
    if (watched_at(fd)) watched[fd].is_watched = 0;
    return real(fd);
}

static int duplicated(int from, int to) {
    if (to >= 0 && to < DESCRIPTORS) {
        struct watched *old = watched_at(from);
        if (old) watched[to] = *old;
        else watched[to].is_watched = 0;
    }
    return to;
}

int dup(int fd) { REAL(dup); return duplicated(fd, real(fd)); }
int dup2(int fd, int to) { REAL(dup2); return duplicated(fd, real(fd, to)); }
int dup3(int fd, int to, int flags) { REAL(dup3); return duplicated(fd, real(fd, to, flags)); }

static int controlled(int (*real)(int, int, ...), int fd, int command, void *argument) {
    int is_lock = command == F_SETLK || command == F_SETLKW || command == F_GETLK || command == F_OFD_SETLK ||
                  command == F_OFD_SETLKW || command == F_OFD_GETLK;
    /* Giving a lock back does not fail in any kernel. */
    int is_unlock = is_lock && ((struct flock *)argument)->l_type == F_UNLCK;
    if (is_lock && !is_unlock && watched_at(fd) && is_faulty(FCNTL)) return -1;
    int result = real(fd, command, argument);
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) duplicated(fd, result);
    return result;
}

#define CONTROLLING(name) \
    int name(int fd, int command, ...) { \
        REAL(name); \
        va_list rest; \
        va_start(rest, command); \
        void *argument = va_arg(rest, void *); \
        va_end(rest); \
        return controlled(real, fd, command, argument); \
    }
CONTROLLING(fcntl)
CONTROLLING(fcntl64)

int flock(int fd, int operation) {
    REAL(flock);
    if (watched_at(fd) && !(operation & LOCK_UN) && is_faulty(FLOCK)) return -1;
    return real(fd, operation);
}

/* ---- Reading ---- */

#define READING(name, parameters, arguments) \
    ssize_t name parameters { \
        REAL(name); \
        if (watched_at(fd) && is_faulty(READ)) return -1; \
        return real arguments; \
    }
READING(read, (int fd, void *bytes, size_t size), (fd, bytes, size))
READING(pread, (int fd, void *bytes, size_t size, off_t offset), (fd, bytes, size, offset))
READING(pread64, (int fd, void *bytes, size_t size, off64_t offset), (fd, bytes, size, offset))
READING(readv, (int fd, const struct iovec *parts, int count), (fd, parts, count))

#define LOOKING(name, parameters, arguments, is_ours) \
    int name parameters { \
        REAL(name); \
        if ((is_ours) && is_faulty(STAT)) return -1; \
        return real arguments; \
    }
LOOKING(fstat, (int fd, struct stat *found), (fd, found), watched_at(fd))
LOOKING(fstat64, (int fd, struct stat64 *found), (fd, found), watched_at(fd))
LOOKING(stat, (const char *path, struct stat *found), (path, found), is_below_roots(path))
LOOKING(stat64, (const char *path, struct stat64 *found), (path, found), is_below_roots(path))
LOOKING(lstat, (const char *path, struct stat *found), (path, found), is_below_roots(path))
LOOKING(lstat64, (const char *path, struct stat64 *found), (path, found), is_below_roots(path))
LOOKING(access, (const char *path, int mode), (path, mode), is_below_roots(path))

int statx(int at, const char *path, int flags, unsigned mask, struct statx *found) {
    REAL(statx);
    /* Rust asks without a path whether the call exists, though the header promises the compiler that nobody does. */
    const char *volatile name = path;
    int is_ours = name && (*name ? is_below_roots(name) : watched_at(at) != NULL);
    if (is_ours && is_faulty(STAT)) return -1;
    return real(at, name, flags, mask, found);
}

/* ---- Writing ---- */

/* Writes at an offset, or where the descriptor stands if it is below zero. One that fails has written half. */
static ssize_t written(int fd, const void *bytes, size_t size, off64_t offset) {
    REAL(pwrite64);
    static ssize_t (*real_write)(int, const void *, size_t);
    if (!real_write) real_write = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    int is_failing = is_faulty(WRITE);
    size_t kept = is_failing ? size / 2 : size;
    begin();
    off64_t place = offset;
    if (offset < 0) {
        struct stat64 found;
        int is_appending = (fcntl(fd, F_GETFL) & O_APPEND) != 0 && fstatat64(fd, "", &found, AT_EMPTY_PATH) == 0;
        place = is_appending ? found.st_size : lseek64(fd, 0, SEEK_CUR);
    }
    ssize_t done = offset < 0 ? real_write(fd, bytes, kept) : real(fd, bytes, kept, offset);
    if (done > 0) note('w', watched[fd].inode, place, NULL, bytes, (size_t)done);
    end();
    if (!is_failing) return done;
    errno = (int)control->error;
    return -1;
}

ssize_t write(int fd, const void *bytes, size_t size) {
    REAL(write);
    return watched_at(fd) ? written(fd, bytes, size, -1) : real(fd, bytes, size);
}
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset) {
    REAL(pwrite);
    return watched_at(fd) ? written(fd, bytes, size, offset) : real(fd, bytes, size, offset);
}
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset) {
    REAL(pwrite64);
    return watched_at(fd) ? written(fd, bytes, size, offset) : real(fd, bytes, size, offset);
}
/* Only the first part: callers must go on after a short write anyway. */
ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev);
    if (!watched_at(fd) || count < 1) return real(fd, parts, count);
    return written(fd, parts[0].iov_base, parts[0].iov_len, -1);
}

#define UNSUPPORTED(result, name, parameters, arguments, is_ours) \
    result name parameters { \
        REAL(name); \
        if (is_ours) { \
            errno = EOPNOTSUPP; \
            return -1; \
        } \
        return real arguments; \
    }
/* Callers fall back to plain writes; one that does not fails the comparison with the disk. */
UNSUPPORTED(ssize_t, copy_file_range, (int from, off64_t *a, int to, off64_t *b, size_t size, unsigned flags),
            (from, a, to, b, size, flags), watched_at(to))
UNSUPPORTED(ssize_t, sendfile64, (int to, int from, off64_t *offset, size_t size), (to, from, offset, size),
            watched_at(to))
UNSUPPORTED(int, fallocate64, (int fd, int mode, off64_t offset, off64_t size), (fd, mode, offset, size),
            watched_at(fd))

static int cut(int (*real)(int, off64_t), int fd, off64_t size) {
    if (!watched_at(fd)) return real(fd, size);
    if (is_faulty(TRUNCATE)) return -1;
    begin();
    int result = real(fd, size);
    if (result == 0) note('t', watched[fd].inode, size, NULL, NULL, 0);
    end();
    return result;
}
int ftruncate(int fd, off_t size) { REAL(ftruncate64); return cut(real, fd, size); }
int ftruncate64(int fd, off64_t size) { REAL(ftruncate64); return cut(real, fd, size); }

static int synced(int (*real)(int), int fd) {
    if (!watched_at(fd)) return real(fd);
    if (is_faulty(SYNC)) return -1;
    begin();
    int result = real(fd);
    if (result == 0) note(watched[fd].is_directory ? 'd' : 's', watched[fd].inode, 0, NULL, NULL, 0);
    end();
    return result;
}
int fsync(int fd) { REAL(fsync); return synced(real, fd); }
int fdatasync(int fd) { REAL(fdatasync); return synced(real, fd); }

static void *mapped(void *(*real)(void *, size_t, int, int, int, off64_t), void *at, size_t size, int protection,
                    int flags, int fd, off64_t offset) {
    if (!(flags & MAP_ANONYMOUS) && watched_at(fd)) {
        if (is_faulty(MAP)) return MAP_FAILED;
        if (flags & MAP_SHARED && protection & PROT_WRITE) {
            begin();
            note('m', watched[fd].inode, 0, NULL, NULL, 0);
            end();
        }
    }
    return real(at, size, protection, flags, fd, offset);
}
void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    REAL(mmap64);
    return mapped(real, at, size, protection, flags, fd, offset);
}
void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset) {
    REAL(mmap64);
    return mapped(real, at, size, protection, flags, fd, offset);
}

/* ---- Names ---- */

static uint64_t inode_at(const char *path) {
    struct stat64 found;
    REAL(lstat64);
    return real(path, &found) == 0 ? found.st_ino : 0;
}

#define NAMING(name, parameters, arguments, kind, is_ours, recorded) \
    int name parameters { \
        REAL(name); \
        if (!(is_ours)) return real arguments; \
        if (is_faulty(kind)) return -1; \
        begin(); \
        int result = real arguments; \
        if (result == 0) { recorded; } \
        end(); \
        return result; \
    }
NAMING(rename, (const char *from, const char *to), (from, to), RENAME, is_below_roots(from) || is_below_roots(to),
       note('r', 0, 0, from, to, strlen(to)))
NAMING(renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), RENAME,
       is_below_roots(from) || is_below_roots(to), note('r', 0, 0, from, to, strlen(to)))
NAMING(renameat2, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags), RENAME,
       is_below_roots(from) || is_below_roots(to), note(flags ? '?' : 'r', 0, 0, from, to, strlen(to)))
NAMING(unlink, (const char *path), (path), UNLINK, is_below_roots(path), note('u', 0, 0, path, NULL, 0))
NAMING(unlinkat, (int at, const char *path, int flags), (at, path, flags), UNLINK, is_below_roots(path),
       note(flags ? 'k' : 'u', 0, 0, path, NULL, 0))
NAMING(link, (const char *from, const char *to), (from, to), RENAME, is_below_roots(to),
       note('l', 0, 0, from, to, strlen(to)))
NAMING(linkat, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags), RENAME,
       is_below_roots(to), note('l', 0, 0, from, to, strlen(to)))
NAMING(mkdir, (const char *path, mode_t mode), (path, mode), OPEN, is_below_roots(path),
       note('n', inode_at(path), 0, path, NULL, 0))
NAMING(rmdir, (const char *path), (path), UNLINK, is_below_roots(path), note('k', 0, 0, path, NULL, 0))
