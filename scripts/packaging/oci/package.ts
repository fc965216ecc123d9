import { createHash } from 'node:crypto'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { run } from '../bun-executable.ts'
import type { Release } from '../release.ts'

/** Debian's packages in the image, with those that they depend on: what berth uses, and what a shell script expects. */
const PACKAGES = [
  ...[
    'base-files',
    'base-passwd',
    'bash',
    'dash',
    'coreutils',
    'libc-bin',
    'sed',
    'grep',
    'findutils',
    'mawk',
  ],
  ...['tar', 'gzip', 'procps', 'util-linux', 'ncurses-base', 'ca-certificates', 'bubblewrap', 'git', 'curl'],
]

/** The user that berth runs as. */
const USER = 1000

/** Directories of Debian that are links into /usr (wiki.debian.org/UsrMerge). */
const MERGED = ['bin', 'sbin', 'lib', 'lib64']

/**
 * Writes an image for containers (OCI image layout 1.0, which `docker load` takes too) for this machine's processor. Its files
 * are those of Debian packages that apt downloads from where this machine has them from; no script of theirs runs. It is as
 * new as these packages, so two builds differ when Debian has published something between them.
 *
 * @throws Error without root, apt or the Debian package of berth
 */
export function packageImage(
  { version, commit, owner, seconds, out, work, builds }: Release,
  cache: string,
): void {
  const architecture = process.arch === 'x64' ? 'amd64' : 'arm64'
  const build = builds.find(({ target }) => target.processor === process.arch && target.libc === 'glibc')
  if (build === undefined || process.getuid?.() !== 0)
    throw new Error(`The image needs root, to give files their owners, and the target linux-${process.arch}.`)
  const tree = join(work, 'image')
  for (const name of MERGED) {
    mkdirSync(join(tree, 'usr', name), { recursive: true })
    symlinkSync(`usr/${name}`, join(tree, name))
  }
  const packages = [...download(cache, architecture), join(out, `berth_${version}_${architecture}.deb`)]
  const status = packages.map((file) => {
    run(['sh', '-c', 'dpkg-deb --fsys-tarfile "$0" | tar -x --keep-directory-symlink -C "$1"', file, tree])
    return run(['dpkg-deb', '--field', file]).replace(/^(Package: .*)$/m, '$1\nStatus: install ok installed')
  })
  complete(tree, status)
  const layer = join(work, 'layer.tar')
  pack(tree, layer, seconds)
  writeImage(layer, { version, commit, owner, seconds, architecture, out, work })
}

/** Downloads packages and what they depend on as for an empty system, and returns their files. */
function download(cache: string, architecture: string): string[] {
  mkdirSync(join(cache, 'partial'), { recursive: true })
  writeFileSync(join(cache, 'status'), '')
  const options = [
    `Dir::State::status=${join(cache, 'status')}`,
    `Dir::Cache::archives=${cache}`,
    `APT::Architecture=${architecture}`,
    `APT::Architectures=${architecture}`,
    'APT::Install-Recommends=false',
  ].flatMap((option) => ['-o', option])
  run(['apt-get', '-qq', ...options, 'autoclean'])
  run(['apt-get', '-qq', '-y', ...options, '--download-only', 'install', ...PACKAGES])
  return readdirSync(cache)
    .filter((name) => name.endsWith('.deb'))
    .sort()
    .map((name) => join(cache, name))
}

/** Writes what the scripts of Debian's packages would have made. */
function complete(tree: string, status: readonly string[]): void {
  const place = (path: string): string => join(tree, path)
  for (const file of ['passwd', 'group'])
    writeFileSync(place(`etc/${file}`), readFileSync(place(`usr/share/base-passwd/${file}.master`)))
  appendFileSync(place('etc/passwd'), `berth:x:${USER}:${USER}:berth:/home/berth:/bin/bash\n`)
  appendFileSync(place('etc/group'), `berth:x:${USER}:\n`)
  const authorities = join(place('usr/share/ca-certificates'), 'mozilla')
  const texts = readdirSync(authorities)
    .sort()
    .map((name) => readFileSync(join(authorities, name), 'utf8'))
  mkdirSync(place('etc/ssl/certs'), { recursive: true })
  writeFileSync(place('etc/ssl/certs/ca-certificates.crt'), texts.join(''))
  symlinkSync('mawk', place('usr/bin/awk'))
  rmSync(place('usr/bin/sh'), { force: true })
  symlinkSync('dash', place('usr/bin/sh'))
  mkdirSync(place('var/lib/dpkg'), { recursive: true })
  writeFileSync(place('var/lib/dpkg/status'), status.map((one) => `${one.trim()}\n\n`).join(''))
  for (const directory of ['data', 'home/berth']) {
    mkdirSync(place(directory), { recursive: true })
    chmodSync(place(directory), 0o700)
    chownSync(place(directory), USER, USER)
  }
  for (const documents of ['doc-base', 'man', 'locale', 'info', 'lintian'])
    rmSync(place(`usr/share/${documents}`), { recursive: true, force: true })
}

function pack(directory: string, file: string, seconds: number): void {
  const exact = ['--sort=name', `--mtime=@${seconds}`, '--numeric-owner', '--format=gnu']
  run(['tar', ...exact, '-cf', file, '-C', directory, '.'])
}

interface ImageFacts extends Pick<Release, 'version' | 'commit' | 'owner' | 'seconds' | 'out' | 'work'> {
  readonly architecture: string
}

/** Writes the layout around one layer: its configuration, a manifest, and the list that `docker load` reads. */
function writeImage(
  layer: string,
  { version, commit, owner, seconds, architecture, out, work }: ImageFacts,
): void {
  const layout = join(work, 'layout')
  const blobs = join(layout, 'blobs/sha256')
  mkdirSync(blobs, { recursive: true })
  const layerBytes = readFileSync(layer)
  const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
  const layerHash = hashOf(layerBytes)
  renameSync(layer, join(blobs, layerHash))
  const addJson = (document: object): { digest: string; size: number } => {
    const bytes = Buffer.from(JSON.stringify(document))
    const hash = hashOf(bytes)
    writeFileSync(join(blobs, hash), bytes)
    return { digest: `sha256:${hash}`, size: bytes.length }
  }
  const config = addJson({
    created: new Date(seconds * 1_000).toISOString(),
    architecture,
    os: 'linux',
    config: {
      User: `${USER}:${USER}`,
      WorkingDir: '/home/berth',
      Entrypoint: ['/usr/bin/berth'],
      Cmd: ['serve'],
      Env: [
        'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
        'HOME=/home/berth',
        'LANG=C.UTF-8',
        'BERTH_DATA=/data',
        'BERTH_HOST=0.0.0.0',
        // Docker's default seccomp filter permits no namespaces. Without Landlock berth refuses to start: never `none` unasked.
        'BERTH_ISOLATION=landlock',
      ],
      ExposedPorts: { '4747/tcp': {} },
      Volumes: { '/data': {} },
      // Durations are in nanoseconds.
      Healthcheck: {
        Test: ['CMD', '/usr/bin/berth', 'wait', '--timeout', '5s'],
        Interval: 30e9,
        Timeout: 10e9,
        StartPeriod: 20e9,
      },
      StopSignal: 'SIGTERM',
      Labels: {
        'org.opencontainers.image.title': 'berth',
        'org.opencontainers.image.version': version,
        'org.opencontainers.image.revision': commit,
        'org.opencontainers.image.source': `https://github.com/${owner}/berth`,
        'org.opencontainers.image.licenses': 'MIT',
      },
    },
    rootfs: { type: 'layers', diff_ids: [`sha256:${layerHash}`] },
    history: [{ created: new Date(seconds * 1_000).toISOString(), created_by: 'scripts/release --image' }],
  })
  const manifest = addJson({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...config },
    layers: [
      {
        mediaType: 'application/vnd.oci.image.layer.v1.tar',
        digest: `sha256:${layerHash}`,
        size: layerBytes.length,
      },
    ],
  })
  const name = `${owner}/berth:${version}`
  const index = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [
      {
        mediaType: 'application/vnd.oci.image.manifest.v1+json',
        ...manifest,
        annotations: { 'org.opencontainers.image.ref.name': version, 'io.containerd.image.name': name },
      },
    ],
  }
  const loaded = [
    {
      Config: `blobs/sha256/${config.digest.slice('sha256:'.length)}`,
      RepoTags: [name],
      Layers: [`blobs/sha256/${layerHash}`],
    },
  ]
  writeFileSync(join(layout, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  writeFileSync(join(layout, 'index.json'), JSON.stringify(index))
  writeFileSync(join(layout, 'manifest.json'), JSON.stringify(loaded))
  pack(layout, join(work, 'image.tar'), seconds)
  const file = join(out, `berth-${version}-image-linux-${process.arch}.tar.gz`)
  writeFileSync(
    file,
    Bun.gzipSync(readFileSync(join(work, 'image.tar')), { library: 'libdeflate', level: 6 }),
  )
}
