package berth

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// entry is a file, a directory or a symbolic link below a local directory.
type entry struct {
	// path is relative, with slashes.
	path string
	info fs.FileInfo
	// target is where a link leads.
	target string
}

// isFile reports whether the entry is a regular file.
func (e entry) isFile() bool { return e.info.Mode().IsRegular() }

// isExecutable reports whether the entry is a file that its owner, group or others may execute.
func (e entry) isExecutable() bool { return e.isFile() && e.info.Mode()&0o111 != 0 }

// piece is a part of a file.
type piece struct {
	offset, size int64
	more         bool
}

// entriesOf lists what is below a directory, sorted. Sockets, pipes and devices are left out, and so are .git and node_modules,
// wherever they are: they are made anew, or are the developer's own. filter, which may be nil, says which other paths count.
func entriesOf(directory string, filter func(path string) bool) ([]entry, error) {
	var found []entry
	err := filepath.WalkDir(directory, func(file string, item fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(directory, file)
		if err != nil || relative == "." {
			return err
		}
		relative = filepath.ToSlash(relative)
		if item.Name() == ".git" || item.Name() == "node_modules" || filter != nil && !filter(relative) {
			if item.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := item.Info()
		if err != nil {
			return err
		}
		found = append(found, entry{path: relative, info: info})
		switch last := &found[len(found)-1]; {
		case info.Mode()&fs.ModeSymlink != 0:
			last.target, err = os.Readlink(file)
			last.target = filepath.ToSlash(last.target)
		case !info.IsDir() && !info.Mode().IsRegular():
			found = found[:len(found)-1]
		}
		return err
	})
	return found, err
}

// pack writes entries of a directory as tar.gz. pieces, which may be nil, has the parts of files that are not packed whole.
func pack(output io.Writer, directory string, entries []entry, pieces map[string]piece) error {
	compressed := gzip.NewWriter(output)
	archive := tar.NewWriter(compressed)
	for _, e := range entries {
		if err := packEntry(archive, directory, e, pieces); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

func packEntry(archive *tar.Writer, directory string, e entry, pieces map[string]piece) error {
	header := &tar.Header{Name: e.path, Mode: 0o644, Typeflag: tar.TypeReg, ModTime: e.info.ModTime()}
	part := piece{size: e.info.Size()}
	if given, cut := pieces[e.path]; cut {
		part = given
	}
	switch {
	case e.info.IsDir():
		header.Name, header.Mode, header.Typeflag = e.path+"/", 0o755, tar.TypeDir
	case e.target != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, e.target
	default:
		header.Size = part.size
		if e.isExecutable() {
			header.Mode = 0o755
		}
	}
	if err := archive.WriteHeader(header); err != nil || !e.isFile() {
		return err
	}
	file, err := os.Open(filepath.Join(directory, filepath.FromSlash(e.path)))
	if err != nil {
		return err
	}
	defer file.Close()
	written, err := io.Copy(archive, io.NewSectionReader(file, part.offset, part.size))
	if err == nil && written < part.size {
		err = fmt.Errorf("berth: %s became smaller while it was read", file.Name())
	}
	return err
}

// unpack unpacks a tar.gz into a directory, which is made. It fails where an entry leads out of the directory, also by a
// symbolic link, and where a file exists.
func unpack(input io.Reader, directory string) error {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(directory)
	if err != nil {
		return err
	}
	defer root.Close()
	decompressed, err := gzip.NewReader(input)
	if err != nil {
		return err
	}
	archive := tar.NewReader(decompressed)
	for {
		header, err := archive.Next()
		if err == io.EOF {
			// What follows the archive is read too, so that an error of the source is seen.
			_, err = io.Copy(io.Discard, decompressed)
			return err
		}
		if err != nil {
			return err
		}
		if err := unpackEntry(root, archive, header); err != nil {
			return err
		}
	}
}

func unpackEntry(root *os.Root, archive *tar.Reader, header *tar.Header) error {
	name := path.Clean(header.Name)
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return fmt.Errorf("berth: the archive has %q, which leads out of %s", header.Name, root.Name())
	}
	if header.Typeflag == tar.TypeDir {
		return makeDirectories(root, name)
	}
	if err := makeDirectories(root, path.Dir(name)); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeReg:
		mode := fs.FileMode(0o644)
		if header.Mode&0o111 != 0 {
			mode = 0o755
		}
		file, err := root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, archive)
		return errors.Join(err, file.Close())
	case tar.TypeSymlink:
		if path.IsAbs(header.Linkname) || !filepath.IsLocal(filepath.FromSlash(path.Join(path.Dir(name), header.Linkname))) {
			return fmt.Errorf("berth: the archive has a link to %q, which leads out of %s", header.Linkname, root.Name())
		}
		// The root has followed the parent's links in makeDirectories, and refused those that lead out.
		return os.Symlink(filepath.FromSlash(header.Linkname), filepath.Join(root.Name(), filepath.FromSlash(name)))
	}
	return nil
}

// makeDirectories makes a directory below a root, with its parents.
func makeDirectories(root *os.Root, name string) error {
	if name == "." {
		return nil
	}
	made := ""
	for element := range strings.SplitSeq(name, "/") {
		made = filepath.Join(made, element)
		if err := root.Mkdir(made, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	// A file or a link of this name is no directory to write into, unless the link leads to one inside.
	info, err := root.Stat(made)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "mkdir", Path: filepath.Join(root.Name(), made), Err: fs.ErrExist}
	}
	return err
}
