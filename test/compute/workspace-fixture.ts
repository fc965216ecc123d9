import { expect } from 'bun:test'
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LocalWorkspace } from '../../src/compute/local/workspace.ts'
import { RemoteWorkspace } from '../../src/compute/remote/workspace.ts'
import { type Workspace, WorkspaceError, type WorkspaceFault } from '../../src/compute/workspace.ts'
import { CalledServer } from './called-server.ts'

/** What the file outside every workspace holds; no read may ever return it. */
export const SECRET = 'the secret of the host'

export const LINUX = process.platform === 'linux'

/** The workspaces of which one suite holds: of this machine, and one that is reached by calls to a sandboxd. */
export const KINDS = LINUX
  ? (['by descriptor', 'by checked path', 'through calls'] as const)
  : (['by checked path'] as const)
export type Kind = (typeof KINDS)[number]

/** Those of which one test of each way is enough: how entries are pinned makes no difference. */
export const WAYS = KINDS.filter((kind) => !LINUX || kind !== 'by checked path')

/** A workspace beside a folder that must stay out of reach. Going out of scope it fails on a descriptor left open. */
export class Box implements AsyncDisposable {
  readonly folder: string
  readonly root: string
  readonly outside: string

  /** Makes a workspace of a kind, on Linux by descriptor if none is given. */
  static async open(kind: Kind = LINUX ? 'by descriptor' : 'by checked path'): Promise<Box> {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'berth-workspace-')))
    const root = join(folder, 'workspace')
    mkdirSync(root)
    if (kind !== 'through calls') return new Box(folder, new LocalWorkspace(root, kind === 'by descriptor'))
    const server = await CalledServer.start(folder, root)
    const staging = join(folder, 'staging')
    return new Box(folder, new RemoteWorkspace({ connect: async () => server.client, staging }), server)
  }

  private constructor(
    folder: string,
    readonly workspace: Workspace,
    readonly server: CalledServer | null = null,
  ) {
    this.folder = folder
    this.root = join(folder, 'workspace')
    this.outside = join(folder, 'outside')
    mkdirSync(this.outside)
    writeFileSync(join(this.outside, 'f'), SECRET)
  }

  /** The host's path of something in the workspace. */
  at(path: string): string {
    return join(this.root, path)
  }

  async text(path: string): Promise<string> {
    return new TextDecoder().decode(await this.workspace.read(path))
  }

  async write(path: string, text: string): Promise<void> {
    await this.workspace.write(path, new TextEncoder().encode(text))
  }

  /** Bytes of all blocks below the workspace, each file once, as another program counts them. In memory directories have none. */
  blocks(): number {
    const { stdout } = Bun.spawnSync(['du', '--summarize', '--block-size=1', this.root])
    return Number.parseInt(stdout.toString(), 10) - lstatSync(this.root).blocks * 512
  }

  /** What stays open; sandboxd closes its files soon after. */
  async leftOpen(): Promise<string[]> {
    for (let attempt = 0; this.server !== null && attempt < 200; attempt += 1) {
      if (this.openFiles().length === 0) break
      await Bun.sleep(10)
    }
    return this.openFiles()
  }

  /** Files and folders of the box that berth or its sandboxd holds open. */
  private openFiles(): string[] {
    const pids = [process.pid, ...(this.server === null ? [] : [this.server.pid])]
    return pids.flatMap((pid) => openBelow(this.folder, pid)).filter((path) => !path.endsWith('/lock'))
  }

  /** The folder outside holds what it held at first. */
  expectOutsideUntouched(): void {
    expect(readdirSync(this.outside)).toEqual(['f'])
    expect(readFileSync(join(this.outside, 'f'), 'utf8')).toBe(SECRET)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const open = await this.leftOpen()
    await this.server?.[Symbol.asyncDispose]()
    // Not `fs.rm`, which takes seconds for a tree of a thousand levels.
    await Bun.spawn(['rm', '-rf', this.folder]).exited
    if (open.length > 0) throw new Error(`descriptors left open: ${open.join(', ')}`)
  }
}

/** Asserts the fault of a refusal. */
export async function expectFault(call: Promise<unknown>, fault: WorkspaceFault): Promise<void> {
  const outcome = await call.then(
    (value) => value,
    (error) => error,
  )
  if (outcome instanceof WorkspaceError) expect(outcome.fault).toBe(fault)
  else throw new Error(`expected the fault ${fault}, got ${Bun.inspect(outcome)}`)
}

/** Files and folders below a folder that a process holds open. Empty where the system does not tell. */
export function openBelow(folder: string, pid = process.pid): string[] {
  if (!LINUX) return []
  const dir = `/proc/${pid}/fd`
  return namesIn(dir).flatMap((descriptor) => {
    try {
      const target = readlinkSync(`${dir}/${descriptor}`)
      return target.startsWith(folder) ? [target] : []
    } catch {
      return []
    }
  })
}

/** sandboxd shows its descriptors to root alone. */
function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir)
  } catch {
    return []
  }
}
