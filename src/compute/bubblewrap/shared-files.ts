import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { selfFiles } from '../../runtime/self.ts'
import type { LocalDriverOptions } from '../local/isolation.ts'
import { selectMachineTools } from '../local/machine-tools.ts'
import { WORKSPACE } from '../local/mount-tables.ts'
import { type SystemPath, systemDirectories } from '../local/system-files.ts'
import { isOn, SANDBOX_TOOLS, ToolsDirectory } from '../local/tools-directory.ts'
import { EtcDirectory } from './etc.ts'

/** Paths inside the sandbox of sandboxd's executable and, when berth runs from source, of its source files. */
export const PROGRAM = '/berth'
export const SOURCES = '/run/berth/src'

/** Path inside the sandbox of the tools that berth provides. */
export const TOOLS = '/opt/berth'

/** Path inside the sandbox of the server's caches. */
export const SANDBOX_CACHES = '/var/cache/berth'

/** The user's name inside; its number is 1000, since a root without powers breaks programs such as tar. */
export const USER = 'berth'

/** Absolute paths of what every sandbox has mounted. */
export interface SharedMounts {
  /** Directories beside /usr, or links into it. */
  systemDirectories: SystemPath[]
  /** Becomes /etc. */
  etc: string
  /** Directories of the system to mount inside /etc. */
  etcDirectories: readonly SystemPath[]
  /** Tools of the machine outside the system's own directories, and links to them. */
  machineTools: readonly SystemPath[]
  /** The directory with the tools that berth provides; becomes `TOOLS`. */
  tools: string
  /** Becomes `PROGRAM`. */
  program: string
  /** Becomes `SOURCES`; null if the program contains them. */
  sources: string | null
  /** Files of /proc that a sandbox whose user is root to the kernel may not see. */
  rootsFiles: string[]
  /** The PATH inside, without the tools that berth provides. */
  path: string
}

/** The mounts for which berth writes files. */
type WrittenMounts = Pick<SharedMounts, 'etc' | 'etcDirectories' | 'tools'>

/** The files of this machine and of berth that every sandbox sees. */
export class SharedFiles {
  readonly #options: LocalDriverOptions
  readonly #tools: ToolsDirectory
  #etc: EtcDirectory | null = null
  #found: Omit<SharedMounts, keyof WrittenMounts> | null = null
  #mounts: SharedMounts | null = null

  constructor(options: LocalDriverOptions) {
    this.#options = options
    this.#tools = new ToolsDirectory(join(options.dataDir, SANDBOX_TOOLS), PROGRAM, TOOLS)
  }

  /** Returns mounts to try an isolation with: of what is there already, since a start of berth waits for it. */
  forProbe(): SharedMounts {
    return { etc: '/etc', etcDirectories: [], tools: this.#options.dataDir, ...this.#find() }
  }

  /**
   * Returns the mounts of a server. The first call writes berth's files, later ones update what has changed since, or is gone.
   *
   * @param nameServer the address of the name server that programs ask; null for those of the machine
   */
  forServer(nameServer: string | null): SharedMounts {
    // A person may have removed the directory meanwhile.
    if (this.#mounts === null || !existsSync(this.#mounts.etc) || !existsSync(this.#mounts.tools))
      this.#mounts = { ...this.#write(nameServer), ...this.#find() }
    this.#etc?.refresh()
    return this.#mounts
  }

  /** Returns the PATH of commands, with the tools that berth provides. */
  commandPath({ path }: SharedMounts): string {
    return this.#tools.extend(path, WORKSPACE)
  }

  #write(nameServer: string | null): WrittenMounts {
    this.#etc = new EtcDirectory(join(this.#options.dataDir, 'sandbox', 'etc'), nameServer)
    const etcDirectories = this.#etc.prepare({
      passwd: `${USER}:x:1000:1000:${USER}:/workspace:/bin/sh\n`,
      group: `${USER}:x:1000:\n`,
    })
    this.#tools.prepare(isOn(this.#find().path))
    return { etc: this.#etc.path, etcDirectories, tools: this.#tools.path }
  }

  /** Looks for what this machine has, once: the first server gets what the isolation was tried with. */
  #find(): Omit<SharedMounts, keyof WrittenMounts> {
    if (this.#found !== null) return this.#found
    const { self } = this.#options
    const { path, shown } = selectMachineTools(this.#options)
    this.#found = {
      ...selfFiles(self),
      systemDirectories: systemDirectories(),
      machineTools: shown,
      rootsFiles: process.getuid?.() === 0 ? findRootsFiles() : [],
      path: path.join(':'),
    }
    return this.#found
  }
}

/**
 * Returns the files right below /proc that only root may read, such as the kernel's addresses in vmallocinfo. A
 * sandbox that root started could read them without any capability.
 */
function findRootsFiles(): string[] {
  return readdirSync('/proc', { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => `/proc/${name}`)
    .filter((path) => {
      const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0o077
      return (mode & 0o077) === 0
    })
}
