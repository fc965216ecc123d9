import {
  chmodSync,
  createReadStream,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { type Pack, pack } from 'tar-stream'
import { tarBytes } from '../../runtime/tar-bytes.ts'
import { ToolsDirectory } from '../local/tools-directory.ts'
import {
  CACHES_PATH,
  EXECUTABLE_PATH,
  lineOfUser,
  SERVER_USER,
  TOOLS_PATH,
  WORKSPACE_PATH,
} from './engine.ts'

/** What an image has already, by which it is decided what is added. */
export interface BaseImage {
  /** The programs that it has, of those before which a script of berth goes. */
  readonly programs: ReadonlySet<string>
  /** The content of its /etc/passwd. */
  readonly users: string
}

/**
 * Yields what berth adds to an image for servers, as tar: its executable and its tools, the directories of servers, and
 * their user, so that programs find its name and home.
 *
 * @param executable absolute path of berth's executable for the system of the image
 */
export async function* serverLayer(executable: string, base: BaseImage): AsyncGenerator<Uint8Array> {
  const directory = mkdtempSync(join(tmpdir(), 'berth-tools-'))
  try {
    const tools = new ToolsDirectory(join(directory, 'tools'), EXECUTABLE_PATH, TOOLS_PATH)
    tools.prepare((program) => base.programs.has(program))
    const tar = pack()
    yield* tarBytes(tar, async () => {
      tar.entry({ name: 'etc/passwd', mode: 0o644 }, withServerUser(base.users))
      for (const path of [WORKSPACE_PATH, CACHES_PATH])
        tar.entry({ name: path.slice(1), uid: SERVER_USER, gid: SERVER_USER, mode: 0o755, type: 'directory' })
      addTree(tar, tools.path, TOOLS_PATH.slice(1))
      const { size } = statSync(executable)
      const sink = tar.entry({ name: EXECUTABLE_PATH.slice(1), mode: 0o755, size })
      await pipeline(createReadStream(executable, { highWaterMark: 1024 * 1024 }), sink)
    })
  } finally {
    chmodSync(directory, 0o700)
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Adds a directory of small files and all below it. */
function addTree(tar: Pack, root: string, name: string): void {
  tar.entry({ name, mode: 0o755, type: 'directory' })
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const header = { name: join(name, relative(root, path)), mode: lstatSync(path).mode & 0o777 }
    if (entry.isDirectory()) tar.entry({ ...header, type: 'directory' })
    else if (entry.isSymbolicLink()) tar.entry({ ...header, type: 'symlink', linkname: readlinkSync(path) })
    else tar.entry(header, readFileSync(path))
  }
}

/** Returns the content of /etc/passwd with the user of servers in it. */
const withServerUser = (users: string): string =>
  new RegExp(`^[^:]*:[^:]*:${SERVER_USER}:`, 'm').test(users) ? users : `${users}${lineOfUser(SERVER_USER)}`
