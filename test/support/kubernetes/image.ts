import { createHash } from 'node:crypto'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  copyFileSync,
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { EXECUTABLE_PATH, SERVER_USER, TOOLS_PATH } from '../../../src/compute/engine/engine.ts'
import { isOn, ToolsDirectory } from '../../../src/compute/local/tools-directory.ts'
import { testCache } from './executable.ts'

/** The image of servers. */
export const SERVER_IMAGE = 'localhost/berth-server:test'

/** The same by a name that does not say it has berth's executable. */
export const PLAIN_IMAGE = 'localhost/plain:test'

/** The image that holds the namespaces of each pod. */
export const PAUSE_IMAGE = 'localhost/pause:test'

/** What the tests' commands need beyond the smallest Debian. */
const PACKAGES = ['ca-certificates', 'git', 'procps', 'python3-minimal']

/** Changes when the base is made in another way. */
const BASE_VERSION = 1

/**
 * Writes an archive with both images, as `docker save` would, without an engine. They share the base, which is made once by
 * debootstrap, and the layer with berth's executable and tools.
 *
 * @param executable berth's own, which is in the image
 */
export async function writeImages(archive: string, executable: string): Promise<void> {
  const base = await baseLayer()
  const work = mkdtempSync(`${archive}.`)
  try {
    const tools = new ToolsDirectory(join(work, 'layer', TOOLS_PATH), EXECUTABLE_PATH, TOOLS_PATH)
    tools.prepare(isOn('/usr/bin:/bin'))
    mkdirSync(join(work, 'layer', EXECUTABLE_PATH, '..'), { recursive: true })
    copyFileSync(executable, join(work, 'layer', EXECUTABLE_PATH))
    const own = join(work, 'berth.tar')
    await tar(join(work, 'layer'), own)
    copyFileSync(base, join(work, 'base.tar'))
    const layers = ['base.tar', 'berth.tar']
    const sums = await Promise.all(layers.map((layer) => sha256(join(work, layer))))
    const config = (file: string, fields: object): void => {
      const image = {
        architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
        os: 'linux',
        config: fields,
      }
      const rootfs = { type: 'layers', diff_ids: sums.map((sum) => `sha256:${sum}`) }
      writeFileSync(join(work, file), JSON.stringify({ ...image, rootfs, history: layers.map(() => ({})) }))
    }
    const PATH = '/usr/local/bin:/usr/bin:/bin'
    config('server.json', { Env: [`PATH=${PATH}`], User: `${SERVER_USER}:${SERVER_USER}` })
    const wait = 'trap "exit 0" TERM INT; while :; do sleep 86400 & wait $!; done'
    config('pause.json', { Env: [`PATH=${PATH}`], Entrypoint: ['/bin/sh', '-c', wait], User: '65534:65534' })
    const manifest = [
      { Config: 'server.json', RepoTags: [SERVER_IMAGE, PLAIN_IMAGE], Layers: layers },
      { Config: 'pause.json', RepoTags: [PAUSE_IMAGE], Layers: layers },
    ]
    writeFileSync(join(work, 'manifest.json'), JSON.stringify(manifest))
    await run('tar', '-C', work, '-cf', archive, 'manifest.json', 'server.json', 'pause.json', ...layers)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Returns the path of the base as a tar archive; it is made once, which takes half a minute. */
export async function baseLayer(): Promise<string> {
  const { VERSION_CODENAME: suite = 'stable' } = osRelease()
  const wanted = createHash('sha256')
    .update([BASE_VERSION, suite, process.arch, ...PACKAGES].join())
    .digest('hex')
  const path = join(testCache(), `server-base-${wanted.slice(0, 16)}.tar`)
  if (existsSync(path)) return path
  mkdirSync(testCache(), { recursive: true })
  const root = mkdtempSync(`${path}.`)
  try {
    const [mirror = ''] = (await run('apt-get', 'indextargets', '--format', '$(REPO_URI)')).split('\n')
    await run('debootstrap', '--variant=minbase', `--include=${PACKAGES.join()}`, suite, root, mirror)
    for (const directory of ['var/cache/apt', 'var/lib/apt/lists', 'usr/share/doc', 'usr/share/man'])
      rmSync(join(root, directory), { recursive: true, force: true })
    appendFileSync(join(root, 'etc/passwd'), `berth:x:${SERVER_USER}:${SERVER_USER}::/workspace:/bin/sh\n`)
    appendFileSync(join(root, 'etc/group'), `berth:x:${SERVER_USER}:\n`)
    mkdirSync(join(root, 'workspace'))
    chownSync(join(root, 'workspace'), SERVER_USER, SERVER_USER)
    chmodSync(root, 0o755)
    await tar(root, `${root}.tar`)
    renameSync(`${root}.tar`, path)
    return path
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

/** Packs a directory so that equal contents give equal archives, which a node then imports once. */
const tar = (directory: string, archive: string): Promise<string> =>
  run('tar', '--sort=name', '--numeric-owner', '--mtime=@0', '-C', directory, '-cf', archive, '.')

function osRelease(): Record<string, string | undefined> {
  const lines = readFileSync('/etc/os-release', 'utf8').split('\n')
  return Object.fromEntries(lines.map((line) => line.split('=').map((part) => part.replaceAll('"', ''))))
}

async function sha256(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest('hex')
}

async function run(...command: string[]): Promise<string> {
  const child = Bun.spawn(command, { stdio: ['ignore', 'pipe', 'pipe'] })
  const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()])
  if ((await child.exited) !== 0) throw new Error(`${command.join(' ')}: ${errors || output}`)
  return output
}
