/** Builds all that a release consists of. Publishes nothing, and needs npm's registry only for Bun's executables. */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { gzip, tar, zip } from './packaging/archive.ts'
import { bunExecutable, run } from './packaging/bun-executable.ts'
import { billOfMaterials } from './packaging/components.ts'
import { buildExecutable, git, prepareParts, root } from './packaging/executable.ts'
import { packageImage } from './packaging/oci/package.ts'
import { packageAll } from './packaging/packages.ts'
import type { BuiltTarget, Release } from './packaging/release.ts'
import { TARGETS, targetNamed } from './packaging/targets.ts'
import { publishCommands, waysTable } from './packaging/ways.ts'

const HELP = `scripts/release [options]

Builds executables, archives, packages, sums, the bill of materials and licences into dist/release. The same commit gives the
same bytes. Publishes nothing: it prints the commands that do.

  --only TARGET,…  only these systems: ${TARGETS.map(({ name }) => name).join(', ')}
  --out DIR        another directory than dist/release; it is emptied
  --image          build the image for containers too: needs root, apt-get, and Debian's packages
  --sign KEY       sign SHA256SUMS with this SSH key (ssh-keygen -Y sign)
  --baseline       write the API's documents to fixtures/openapi, in the commit that is released, and nothing else
  --table          print the table of ways to get berth, and nothing else
`

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    out: { type: 'string' },
    image: { type: 'boolean' },
    sign: { type: 'string' },
    baseline: { type: 'boolean' },
    table: { type: 'boolean' },
    help: { type: 'boolean' },
  },
})
if (values.help || values.table) {
  process.stdout.write(values.help ? HELP : waysTable())
  process.exit(0)
}
if (values.baseline) {
  const { describeApi, describeControl } = await import('../src/instance/describe.ts')
  const documents = { api: await describeApi(), control: await describeControl() }
  for (const [name, document] of Object.entries(documents))
    writeFileSync(join(root, 'fixtures/openapi', `${name}.json`), `${JSON.stringify(document, null, 2)}\n`)
  process.exit(0)
}

try {
  await release(
    values.only?.split(',').map(targetNamed) ?? TARGETS,
    resolve(values.out ?? join(root, 'dist/release')),
  )
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
}

async function release(targets: readonly (typeof TARGETS)[number][], out: string): Promise<void> {
  const commit = git('rev-parse', 'HEAD')
  const seconds = Number(process.env.SOURCE_DATE_EPOCH ?? git('log', '-1', '--format=%ct'))
  if (commit === null || !Number.isInteger(seconds) || seconds <= 0)
    throw new Error(
      'A release is built from a commit: run scripts/release in a clone of the repository, with git.',
    )
  const key = values.sign
  // Before the build, which takes a minute.
  if (
    key !== undefined &&
    (!statSync(key, { throwIfNoEntry: false })?.isFile() || Bun.which('ssh-keygen') === null)
  )
    throw new Error(
      `${key} cannot sign: --sign takes the file of an SSH key, and needs ssh-keygen. Make a key with: ssh-keygen -t ed25519 -f FILE`,
    )
  if (git('status', '--porcelain') !== '')
    console.error('There are changes without a commit: what is built here is no release.')
  // Programs that write archives take it from there.
  process.env.SOURCE_DATE_EPOCH = String(seconds)
  rmSync(out, { recursive: true, force: true })
  const work = join(out, '.work')
  mkdirSync(work, { recursive: true })

  const parts = await prepareParts()
  const owner = readFileSync(join(root, 'scripts/packaging/owner'), 'utf8').trim()
  const { version } = parts
  const builds = targets.map((target): BuiltTarget => {
    const directory = join(work, target.name)
    const bun = bunExecutable(target, join(root, 'node_modules/.cache/bun-executables'), directory)
    buildExecutable(parts, join(directory, 'berth'), { name: target.bunTarget, bun })
    const bytes = readFileSync(join(directory, 'berth'))
    const bunBytes = statSync(bun).size
    rmSync(bun)
    const own = ((bytes.length - bunBytes) / 1e6).toFixed(1)
    say(`${target.name}: ${megabytes(bytes.length)} MB, of which Bun ${megabytes(bunBytes)} and berth ${own}`)
    return { target, bytes, path: join(directory, 'berth') }
  })
  const made: Release = { version, commit, seconds, owner, out, work, builds, licenses: parts.licenses }

  for (const { target, bytes } of builds) {
    const name = `berth-${version}-${target.name}`
    const files = [
      { path: `${name}/berth`, bytes, isProgram: true },
      { path: `${name}/LICENSE`, bytes: readFileSync(join(root, 'LICENSE')) },
      { path: `${name}/THIRD-PARTY-LICENSES.txt`, bytes: Buffer.from(parts.licenses) },
    ]
    writeFileSync(join(out, `${name}.tar.gz`), gzip(await tar(files, seconds)))
    writeFileSync(join(out, `${name}.zip`), zip(files))
    say(`${name}.tar.gz: ${megabytes(statSync(join(out, `${name}.tar.gz`)).size)} MB`)
  }
  writeFileSync(
    join(out, `berth-${version}.cdx.json`),
    billOfMaterials({ version, commit, seconds }, parts.packages),
  )
  writeFileSync(join(out, 'THIRD-PARTY-LICENSES.txt'), parts.licenses)
  await packageAll(made)
  if (values.image) packageImage(made, join(root, 'node_modules/.cache/debian-packages'))
  rmSync(work, { recursive: true })

  const sums = readdirSync(out, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(out, name)).isFile() && !name.startsWith('repositories/'))
    .sort()
    .map((name) => `${sha256(join(out, name))}  ${name}\n`)
  writeFileSync(join(out, 'SHA256SUMS'), sums.join(''))
  if (key !== undefined) run(['ssh-keygen', '-Y', 'sign', '-n', 'berth', '-f', key, join(out, 'SHA256SUMS')])
  say(`\nBuilt ${out} from ${commit}.\n\n${publishCommands(made)}`)
}

function sha256(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(0)
}

function say(text: string): void {
  console.error(text)
}
