import { crc32, deflateRawSync, gzipSync } from 'node:zlib'

/** An entry of a tar as its bytes say it, true or not. */
export interface TarEntry {
  name: string | Buffer
  /** `0` file, `1` hard link, `2` symbolic link, `3` and `4` devices, `5` folder, `6` pipe, `x` pax, `L` long name. */
  type?: string
  content?: string | Buffer
  link?: string
  mode?: number
  /** In place of the content's length. */
  size?: number
}

/** A tar (POSIX ustar) of any entries at all, closed as it should be. */
export function tar(...entries: TarEntry[]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.concat([...entries.map(tarEntry), Buffer.alloc(1024)]))
}

export const tgz = (...entries: TarEntry[]): Uint8Array<ArrayBuffer> =>
  new Uint8Array(gzipSync(tar(...entries)))

function tarEntry({ name, type = '0', content = '', link = '', mode = 0o644, size }: TarEntry): Buffer {
  const bytes = Buffer.from(content)
  const header = Buffer.alloc(512)
  Buffer.from(name).copy(header, 0, 0, 100)
  header.write(mode.toString(8).padStart(7, '0'), 100)
  header.write('0000000', 108)
  header.write('0000000', 116)
  header.write((size ?? bytes.length).toString(8).padStart(11, '0'), 124)
  header.write('00000000000', 136)
  header.write('        ', 148)
  header.write(type, 156)
  header.write(link, 157, 100)
  header.write('ustar\0', 257)
  header.write('00', 263)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return Buffer.concat([header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)])
}

/** A pax record (POSIX pax, extended header). */
export function paxRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`
  let length = Buffer.byteLength(rest)
  while (String(length).length + Buffer.byteLength(rest) !== length) length += 1
  return `${length}${rest}`
}

/** An entry of a zip as its bytes say it, true or not. */
export interface ZipEntry {
  name: string | Buffer
  content?: string | Buffer
  /** Unix mode with the kind of file; without it the entry is made by DOS. */
  mode?: number
  /** In place of the content's length, its checksum and its way of compression. */
  size?: number
  crc?: number
  method?: number
  flags?: number
}

/** A zip of any entries at all. */
export function zip(...entries: ZipEntry[]): Uint8Array<ArrayBuffer> {
  const locals: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const { name, content = '', mode, size, crc, method = 8, flags = 0x800 } of entries) {
    const bytes = Buffer.from(content)
    const packed = method === 8 ? deflateRawSync(bytes) : bytes
    const raw = Buffer.from(name)
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0)
    common.writeUInt16LE(flags, 2)
    common.writeUInt16LE(method, 4)
    common.writeUInt32LE(crc ?? crc32(bytes), 10)
    common.writeUInt32LE(packed.length, 14)
    common.writeUInt32LE(size ?? bytes.length, 18)
    common.writeUInt16LE(raw.length, 22)
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, raw, packed])
    const rest = Buffer.alloc(14)
    rest.writeUInt32LE(((mode ?? 0) << 16) >>> 0, 6)
    rest.writeUInt32LE(offset, 10)
    const madeBy = Buffer.from([20, mode === undefined ? 0 : 3])
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02'), madeBy, common, rest, raw]))
    locals.push(local)
    offset += local.length
  }
  const listed = Buffer.concat(directory)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(entries.length, 4)
  end.writeUInt16LE(entries.length, 6)
  end.writeUInt32LE(listed.length, 8)
  end.writeUInt32LE(offset, 12)
  return new Uint8Array(Buffer.concat([...locals, listed, Buffer.from('PK\x05\x06'), end]))
}
