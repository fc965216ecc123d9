import { readFile } from 'node:fs/promises'
import { openPromise } from 'yauzl'

/** Most bytes of a module's files together: Go's own limit. @bound system */
const MAX_BYTES = 500 * 2 ** 20

/**
 * Returns the hash of a module's file in Go's checksum database ("h1:", golang.org/x/mod/sumdb/dirhash), in hexadecimal.
 *
 * @param path of a module's archive, or of its go.mod
 * @throws Error if the archive cannot be read
 */
export async function goHash(path: string, kind: 'zip' | 'mod'): Promise<string> {
  const files =
    kind === 'zip' ? await hashesIn(path) : [{ name: 'go.mod', hash: sha256(await readFile(path)) }]
  files.sort((one, other) => Buffer.compare(Buffer.from(one.name), Buffer.from(other.name)))
  return sha256(files.map(({ name, hash }) => `${hash}  ${name}\n`).join(''))
}

/** Returns the files in a ZIP archive with their hashes. */
async function hashesIn(path: string): Promise<{ name: string; hash: string }[]> {
  const zip = await openPromise(path, { autoClose: false, lazyEntries: true })
  try {
    const files: { name: string; hash: string }[] = []
    let bytes = 0
    for await (const entry of zip.eachEntry()) {
      bytes += entry.uncompressedSize
      if (bytes > MAX_BYTES) throw new Error('it is larger than Go permits')
      if (entry.fileName.endsWith('/')) continue
      const hasher = new Bun.CryptoHasher('sha256')
      for await (const part of await zip.openReadStreamPromise(entry)) hasher.update(part)
      files.push({ name: entry.fileName, hash: hasher.digest('hex') })
    }
    return files
  } finally {
    zip.close()
  }
}

const sha256 = (bytes: string | Uint8Array): string =>
  new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
