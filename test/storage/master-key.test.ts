import { describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StartupError } from '../../src/errors.ts'
import { openCipher } from '../../src/storage/cipher.ts'
import { takeDataDirectory } from '../../src/storage/data-directory.ts'
import { openDatabase } from '../../src/storage/database.ts'

/** A data folder that is opened as a start opens it. */
function dataFolder() {
  const path = mkdtempSync(join(tmpdir(), 'berth-master-key-'))
  return {
    file: join(path, 'master.key'),
    open(configured: Uint8Array | null = null) {
      const dataDirectory = takeDataDirectory(path)
      const database = openDatabase(dataDirectory.database)
      try {
        return openCipher({ queries: database.queries, dataDirectory, configured })
      } finally {
        database.close()
        dataDirectory.release()
      }
    },
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  }
}
const given = (byte: number) => new Uint8Array(32).fill(byte)

describe('the master key', () => {
  test('is made at the first start, for the owner alone, and found again', () => {
    using folder = dataFolder()
    const sealed = folder.open().seal('secret', 'c')
    expect(statSync(folder.file).mode & 0o777).toBe(0o600)
    expect(Buffer.from(readFileSync(folder.file, 'utf8'), 'base64').length).toBe(32)
    expect(folder.open().open(sealed, 'c')).toBe('secret')
  })

  test('is another one in each folder', () => {
    using one = dataFolder()
    using other = dataFolder()
    const sealed = one.open().seal('secret', 'c')
    const cipher = other.open()
    expect(() => cipher.open(sealed, 'c')).toThrow()
  })

  test('that is given is not written to the folder, and has to be given again', () => {
    using folder = dataFolder()
    const sealed = folder.open(given(1)).seal('secret', 'c')
    expect(() => statSync(folder.file)).toThrow('ENOENT')
    expect(folder.open(given(1)).open(sealed, 'c')).toBe('secret')
    expect(() => folder.open()).toThrow(StartupError)
    expect(() => folder.open()).toThrow(/missing.*Restore master\.key.*BERTH_MASTER_KEY.*--data/)
  })

  test('moves from the file to the variable and back', () => {
    using folder = dataFolder()
    const sealed = folder.open().seal('secret', 'c')
    const text = readFileSync(folder.file, 'utf8')
    const key = Buffer.from(text, 'base64')
    rmSync(folder.file)
    expect(folder.open(key).open(sealed, 'c')).toBe('secret')
    writeFileSync(folder.file, key.toString('hex'))
    expect(folder.open().open(sealed, 'c')).toBe('secret')
  })

  test('that is another one stops the start with cause and remedy, whichever way it comes', () => {
    using folder = dataFolder()
    folder.open()
    expect(() => folder.open(given(2))).toThrow(StartupError)
    expect(() => folder.open(given(2))).toThrow(/^BERTH_MASTER_KEY is not the key.*unset it.*--data/)
    const kept = readFileSync(folder.file)
    writeFileSync(folder.file, Buffer.from(given(3)).toString('base64'))
    expect(() => folder.open()).toThrow(StartupError)
    expect(() => folder.open()).toThrow(/master\.key is not the key.*Restore it.*--data/)
    writeFileSync(folder.file, kept)
    folder.open()
  })

  test('file that holds none is not replaced, and its content is not repeated', () => {
    using folder = dataFolder()
    folder.open()
    writeFileSync(folder.file, 'nonsense')
    expect(() => folder.open()).toThrow(/does not hold a key: expected 32 bytes/)
    expect(() => folder.open()).not.toThrow('nonsense')
    expect(readFileSync(folder.file, 'utf8')).toBe('nonsense')
  })
})
