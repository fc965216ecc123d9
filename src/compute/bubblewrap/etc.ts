import {
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { makeReadable } from '../../runtime/make-readable.ts'
import { selectEtc } from '../local/etc-files.ts'
import { findSystemPath, type SystemPath } from '../local/system-files.ts'

/** Files that change while berth runs, when the machine joins another network. */
const RESOLV_CONF = '/etc/resolv.conf'
const VOLATILE = ['/etc/hosts', RESOLV_CONF]

/**
 * An /etc for sandboxes: copies of the files that programs need, and places for the directories among
 * them. One mount shows it; a mount for each file would cost every start 5 ms.
 */
export class EtcDirectory {
  /** Absolute path of the directory. */
  readonly path: string
  readonly #nameServer: string | null
  /** The text of resolv.conf as last written. */
  #written: string | null = null

  /**
   * @param nameServer the address of the name server that programs ask; null for those of the machine
   */
  constructor(path: string, nameServer: string | null) {
    this.path = path
    this.#nameServer = nameServer
  }

  /**
   * Creates or updates the files in place, because running sandboxes see the same directory. Returns the directories
   * of the system's /etc to mount onto the mount points kept for them.
   *
   * @param accounts contents of passwd and group
   */
  prepare(accounts: { passwd: string; group: string }): readonly SystemPath[] {
    mkdirSync(this.path, { recursive: true })
    const { directories, files, links } = selectEtc()
    const copied = [...files.map(({ path }) => path), ...links].map((path) => this.#place(path))
    this.#removeOthers(new Set([...Object.keys(accounts).map((name) => join(this.path, name)), ...copied]))
    for (const [name, text] of Object.entries(accounts)) writeFileSync(join(this.path, name), text)
    for (const entry of files) this.#copy(entry)
    for (const link of links) this.#copyLink(link)
    for (const { path } of directories) mkdirSync(this.#place(path), { recursive: true })
    if (this.#nameServer !== null) this.#writeNameServer(this.#nameServer)
    makeReadable(this.path)
    return directories
  }

  /** Copies again the files that may have changed since. */
  refresh(): void {
    for (const entry of VOLATILE.flatMap(findSystemPath)) this.#copy(entry)
    if (this.#nameServer !== null) this.#writeNameServer(this.#nameServer)
  }

  /** Writes resolv.conf(5) with one name server, and the machine's other settings. */
  #writeNameServer(address: string): void {
    let settings: string[] = []
    try {
      settings = readFileSync(RESOLV_CONF, 'utf8')
        .split('\n')
        .filter((line) => /^(search|domain|options)\b/.test(line))
    } catch {
      // A machine without one, which asks a name server of its own.
    }
    const text = [`nameserver ${address}`, ...settings, ''].join('\n')
    if (text === this.#written) return
    writeFileSync(this.#place(RESOLV_CONF), text)
    this.#written = text
  }

  #place(path: string): string {
    return join(this.path, path.slice('/etc/'.length))
  }

  /** Removes copies of what is shown no longer: a package may be gone, or a file have become its owner's alone. */
  #removeOthers(shown: ReadonlySet<string>): void {
    for (const name of readdirSync(this.path, { recursive: true, encoding: 'utf8' })) {
      const copy = join(this.path, name)
      if (!shown.has(copy) && !lstatSync(copy).isDirectory()) rmSync(copy)
    }
  }

  #copy({ path, real }: SystemPath): void {
    if (path === RESOLV_CONF && this.#nameServer !== null) return
    try {
      const place = this.#place(path)
      const there = statSync(place, { throwIfNoEntry: false })
      const { size, mtimeMs } = statSync(real)
      if (there === undefined) mkdirSync(dirname(place), { recursive: true })
      if (there === undefined || there.size !== size || there.mtimeMs < mtimeMs) copyFileSync(real, place)
    } catch {
      // A file that may not be read is left out, as commands could not read it either.
    }
  }

  #copyLink(path: string): void {
    try {
      const place = this.#place(path)
      mkdirSync(dirname(place), { recursive: true })
      rmSync(place, { force: true })
      symlinkSync(readlinkSync(path), place)
    } catch {
      // The system is just replacing it.
    }
  }
}
