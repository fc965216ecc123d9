import { expect } from 'bun:test'
import {
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
import { WorkspaceError, type WorkspaceFault } from '../../src/compute/workspace.ts'

/** What the file outside every workspace holds; no read may ever return it. */
export const SECRET = 'the secret of the host'

/** A workspace beside a folder that must stay out of reach. Going out of scope it fails on a descriptor left open. */
export class Box implements AsyncDisposable {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'berth-workspace-')))
  readonly root = join(this.folder, 'workspace')
  readonly outside = join(this.folder, 'outside')
  readonly workspace: LocalWorkspace

  constructor(byDescriptor?: boolean) {
    mkdirSync(this.root)
    mkdirSync(this.outside)
    writeFileSync(join(this.outside, 'f'), SECRET)
    this.workspace = new LocalWorkspace(this.root, byDescriptor)
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

  /** The folder outside holds what it held at first. */
  expectOutsideUntouched(): void {
    expect(readdirSync(this.outside)).toEqual(['f'])
    expect(readFileSync(join(this.outside, 'f'), 'utf8')).toBe(SECRET)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const open = openBelow(this.folder)
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

/** Files and folders below a folder that this process holds open. Empty where the system does not tell. */
export function openBelow(folder: string): string[] {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${descriptor}`)
      return target.startsWith(folder) ? [target] : []
    } catch {
      return []
    }
  })
}
