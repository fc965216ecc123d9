import { buffer } from 'node:stream/consumers'
import { pack } from 'tar-stream'

/** A file of an archive. */
export interface ArchiveFile {
  /** With `/` between directories, relative. */
  readonly path: string
  readonly bytes: Uint8Array
  /** Whether it may be executed; permissions are 755 then, else 644. */
  readonly isProgram?: boolean
  /** Where a symbolic link leads, in place of bytes. */
  readonly link?: string
}

/** What compresses here gives the same bytes on every processor, which zlib does not promise. */
const LEVEL = 6

/** Compresses as gzip, without a name or a time. */
export const gzip = (bytes: Uint8Array): Uint8Array =>
  Bun.gzipSync(new Uint8Array(bytes), { library: 'libdeflate', level: LEVEL })

/**
 * Returns a tar archive (POSIX.1-2001, ustar): files in the given order, all of root, of one time.
 *
 * @param seconds since 1970
 */
export async function tar(files: readonly ArchiveFile[], seconds: number): Promise<Uint8Array> {
  const archive = pack()
  const read = buffer(archive)
  for (const { path, bytes, link, isProgram } of files) {
    const header = {
      name: path,
      mtime: new Date(seconds * 1_000),
      uid: 0,
      gid: 0,
      uname: 'root',
      gname: 'root',
    }
    if (link !== undefined) archive.entry({ ...header, type: 'symlink', linkname: link, mode: 0o777 })
    else if (path.endsWith('/')) archive.entry({ ...header, type: 'directory', mode: 0o755 })
    else archive.entry({ ...header, mode: isProgram ? 0o755 : 0o644 }, Buffer.from(bytes))
  }
  archive.finalize()
  return read
}

/** A file compressed once for several archives; the executable is in a zip and in a wheel. */
const deflated = new WeakMap<Uint8Array, Uint8Array>()

/** MS-DOS's first day, in the zip format's layout: files in zips have that time. */
const DOS_DATE = 0x21

/** Made by Unix, of version 2.0 of the format, so that permissions count. */
const MADE_BY = 0x0314
const NEEDS = 20
const DEFLATE = 8
/** File names are in UTF-8. */
const UTF8 = 0x0800
const REGULAR_FILE = 0o100000

/** Returns a zip archive (PKWARE's APPNOTE, 4.3): files in the given order, all of one time. */
export function zip(files: readonly ArchiveFile[]): Uint8Array {
  const parts: Uint8Array[] = []
  const directory: Uint8Array[] = []
  let offset = 0
  for (const { path, bytes, isProgram } of files) {
    const name = Buffer.from(path)
    const body =
      deflated.get(bytes) ?? Bun.deflateSync(new Uint8Array(bytes), { library: 'libdeflate', level: LEVEL })
    deflated.set(bytes, body)
    // The fields that the header before the file and that of the directory share.
    const common = Buffer.alloc(26)
    common.writeUInt16LE(NEEDS, 0)
    common.writeUInt16LE(UTF8, 2)
    common.writeUInt16LE(DEFLATE, 4)
    common.writeUInt16LE(0, 6)
    common.writeUInt16LE(DOS_DATE, 8)
    common.writeUInt32LE(Bun.hash.crc32(bytes), 10)
    common.writeUInt32LE(body.length, 14)
    common.writeUInt32LE(bytes.length, 18)
    common.writeUInt16LE(name.length, 22)
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), common, name])
    const entry = Buffer.alloc(46)
    entry.write('PK\x01\x02', 'latin1')
    entry.writeUInt16LE(MADE_BY, 4)
    common.copy(entry, 6)
    entry.writeUInt32LE(((REGULAR_FILE | (isProgram ? 0o755 : 0o644)) * 0x10000) >>> 0, 38)
    entry.writeUInt32LE(offset, 42)
    directory.push(entry, name)
    parts.push(local, body)
    offset += local.length + body.length
  }
  const listed = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(files.length, 8)
  end.writeUInt16LE(files.length, 10)
  end.writeUInt32LE(listed.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...parts, listed, end])
}
