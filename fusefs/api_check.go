package fusefs

import "github.com/hanwen/go-fuse/v2/fs"

// What of go-fuse's fs API is implemented, checked by the compiler. Not implemented, and why:
//
//   - NodeCopyFileRanger: the kernel copies by itself (EOPNOTSUPP), through READ and WRITE, with our checks.
//   - NodeGetlker, NodeSetlker, NodeSetlkwer: without EnableLocks the kernel keeps flock(2) and fcntl(2) locks itself,
//     per mount: they exclude, end with their holder, and no blocked lock holds one of our request readers.
//   - NodeTmpfiler: O_TMPFILE answers EOPNOTSUPP, and programs fall back to a named temporary file.
//   - NodeIoctler: there is nothing to control (ENOTTY).
//   - NodeStatxer: GETATTR has all there is.
//   - NodeWritever, FilePassthroughFder: bytes go through the draft.
var (
	_ fs.NodeAccesser       = (*node)(nil)
	_ fs.NodeCreater        = (*node)(nil)
	_ fs.NodeGetattrer      = (*node)(nil)
	_ fs.NodeGetxattrer     = (*node)(nil)
	_ fs.NodeLinker         = (*node)(nil)
	_ fs.NodeListxattrer    = (*node)(nil)
	_ fs.NodeLookuper       = (*node)(nil)
	_ fs.NodeMkdirer        = (*node)(nil)
	_ fs.NodeMknoder        = (*node)(nil)
	_ fs.NodeOpendirHandler = (*node)(nil)
	_ fs.NodeOpener         = (*node)(nil)
	_ fs.NodeReadlinker     = (*node)(nil)
	_ fs.NodeRemovexattrer  = (*node)(nil)
	_ fs.NodeRenamer        = (*node)(nil)
	_ fs.NodeRmdirer        = (*node)(nil)
	_ fs.NodeSetattrer      = (*node)(nil)
	_ fs.NodeSetxattrer     = (*node)(nil)
	_ fs.NodeStatfser       = (*node)(nil)
	_ fs.NodeSymlinker      = (*node)(nil)
	_ fs.NodeUnlinker       = (*node)(nil)
	_ fs.FileAllocater      = (*handle)(nil)
	_ fs.FileFlusher        = (*handle)(nil)
	_ fs.FileFsyncer        = (*handle)(nil)
	_ fs.FileLseeker        = (*handle)(nil)
	_ fs.FileReader         = (*handle)(nil)
	_ fs.FileReleaser       = (*handle)(nil)
	_ fs.FileWriter         = (*handle)(nil)
	_ fs.FileReaddirenter   = (*dirHandle)(nil)
	_ fs.FileSeekdirer      = (*dirHandle)(nil)
	_ fs.FileFsyncdirer     = (*dirHandle)(nil)
	_ fs.NodeGetattrer      = (*vinode)(nil)
	_ fs.NodeGetxattrer     = (*vinode)(nil)
	_ fs.NodeListxattrer    = (*vinode)(nil)
	_ fs.NodeLookuper       = (*vinode)(nil)
	_ fs.NodeOpener         = (*vinode)(nil)
	_ fs.NodeReaddirer      = (*vinode)(nil)
	_ fs.NodeReadlinker     = (*vinode)(nil)
	_ fs.NodeSetattrer      = (*vinode)(nil)
	_ fs.FileReader         = (*vhandle)(nil)
	_ fs.FileWriter         = (*vhandle)(nil)
	_ fs.FileFlusher        = (*vhandle)(nil)
	_ fs.FileFsyncer        = (*vhandle)(nil)
	_ fs.FileReleaser       = (*vhandle)(nil)
)
