package fusefs

import (
	"context"
	"errors"
	"syscall"

	"memoryfs/backend"
)

// errnos is the closed table of SEMANTICS.md section 4. The first sentinel that an error wraps decides; what wraps none
// is EIO. ErrStale is EAGAIN everywhere but in write(2) and ftruncate, which answer ESTALE by themselves: EAGAIN there
// hangs every Go program for ever.
var errnos = []struct {
	err   error
	errno syscall.Errno
}{
	{backend.ErrNotExist, syscall.ENOENT},
	{backend.ErrDenied, syscall.EACCES},
	{backend.ErrUnknown, syscall.EACCES},
	{backend.ErrStale, syscall.EAGAIN},
	{backend.ErrExist, syscall.EEXIST},
	{backend.ErrNotEmpty, syscall.ENOTEMPTY},
	{backend.ErrIsDir, syscall.EISDIR},
	{backend.ErrNotDir, syscall.ENOTDIR},
	{backend.ErrInvalid, syscall.EINVAL},
	{backend.ErrInvalidName, syscall.EILSEQ},
	{backend.ErrNameTooLong, syscall.ENAMETOOLONG},
	{backend.ErrTooLarge, syscall.EFBIG},
	{backend.ErrNoSpace, syscall.ENOSPC},
	{backend.ErrReadOnly, syscall.EROFS},
	{backend.ErrPermission, syscall.EPERM},
	{backend.ErrNoXattr, syscall.ENODATA},
	{backend.ErrXattrLarge, syscall.ENOSPC},
	{backend.ErrUnsupported, syscall.ENOTSUP},
	{backend.ErrNoRecord, syscall.EIO},
	{backend.ErrInternal, syscall.EIO},
	{context.Canceled, syscall.EINTR},
	{context.DeadlineExceeded, syscall.EIO}, // the store did not answer; no signal, so nothing that a program may simply try again
}

// toErrno never guesses.
func toErrno(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	for _, e := range errnos {
		if errors.Is(err, e.err) {
			return e.errno
		}
	}
	return syscall.EIO
}

// fail is toErrno that says in the log what an EIO is about: the caller only sees a number.
func (m *Mount) fail(op string, err error) syscall.Errno {
	errno := toErrno(err)
	if errno == syscall.EIO {
		m.log.Error("operation failed", "op", op, "error", err)
	}
	return errno
}

// failByInode is fail for a request that names an inode and no path. An inode that is gone may have been replaced by
// another mount a moment ago: on ESTALE the kernel looks its name up again, and the caller sees the new file, or ENOENT
// (Linux retries path lookups with LOOKUP_REVAL on ESTALE, fs/namei.c).
func (m *Mount) failByInode(op string, err error) syscall.Errno {
	if errors.Is(err, backend.ErrNotExist) {
		return syscall.ESTALE
	}
	return m.fail(op, err)
}
