import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import BUN_PARTS from './bun-parts.json'

const root = join(import.meta.dir, '../..')

/** The directory of this project's own parts of packages, and of the texts of licences. */
const LICENSES = join(import.meta.dir, 'licenses')

/** Names of files with the terms of a package. */
const TERMS = /^(?:licen[cs]e|copying|notice|copyright)(?:[-.].*)?$/i

/** A work of others that is in the executable. */
export interface Component {
  readonly name: string
  readonly version: string
  /** An SPDX expression (spdx.org/licenses). */
  readonly license: string
  /** The texts that it asks to be passed on; empty if its package has none. */
  readonly terms: string
}

/** The entry points of the executable: the program, and the files of its Workers. */
export const ENTRY_POINTS = [
  'src/main.ts',
  'src/compute/local/network/outbound/relay-worker.ts',
  'src/compute/emulators/worker.ts',
] as const

/**
 * Returns the npm packages of which code is in the executable, by name.
 *
 * @param dashboard the source files in the bundle of the dashboard
 */
export async function bundledPackages(dashboard: readonly string[]): Promise<Component[]> {
  const { metafile } = await Bun.build({
    entrypoints: ENTRY_POINTS.map((path) => join(root, path)),
    target: 'bun',
    splitting: true,
    metafile: true,
  })
  if (metafile === undefined) throw new Error('The bundler has not listed the files of the executable.')
  const places = [...Object.keys(metafile.inputs), ...dashboard].flatMap((path) => {
    const [place] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []
    return place === undefined ? [] : [place.slice(place.indexOf('node_modules/'))]
  })
  return [...new Set(places)]
    .map(componentAt)
    .sort((one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : 0))
}

function componentAt(place: string): Component {
  const directory = join(root, place)
  const { name, version, license } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'))
  const files = readdirSync(directory)
    .filter((file) => TERMS.test(file))
    .sort()
  const terms = files.map((file) => readFileSync(join(directory, file), 'utf8').trim()).join('\n\n')
  if (typeof license !== 'string') throw new Error(`The package ${name} names no licence.`)
  return { name, version, license, terms }
}

const RULE = '='.repeat(80)

/** Returns what `berth licenses` prints: the terms of berth, of Bun with what it links, and of each package. */
export function licensesText(version: string, packages: readonly Component[]): string {
  const parts = BUN_PARTS.map(({ name, license, source }) => `- ${name}: ${license}\n  ${source}`)
  const bun = `Bun ${Bun.version}: MIT
https://github.com/oven-sh/bun

The executable begins with Bun, which links these libraries statically. Texts of the GNU Lesser General Public License
and of the Apache License are at the end; the other licences ask for a notice, which this list and the sources give.

${parts.join('\n')}

JavaScriptCore, WebKit's parts and TinyCC are under the GNU Lesser General Public License: you may change them and link
berth with the result. Build Bun ${Bun.version} from its source with your version of the library (its LICENSE.md says how), then
build berth from its source with that Bun: scripts/build, or "bun build --compile-executable-path" for another system.
The source of berth is the commit that "berth version" prints.`
  const shown = packages.map(
    ({ name, version: at, license, terms }) =>
      `${name} ${at}: ${license}${terms === '' ? '' : `\n\n${terms}`}`,
  )
  const texts = ['LGPL-2.0', 'LGPL-2.1', 'Apache-2.0'].map(
    (name) => `${name}\n\n${readFileSync(join(LICENSES, `${name}.txt`), 'utf8').trim()}`,
  )
  const own = `berth ${version}\n\n${readFileSync(join(root, 'LICENSE'), 'utf8').trim()}`
  return `${[own, bun, ...shown, ...texts].join(`\n\n${RULE}\n\n`)}\n`
}

/**
 * Returns the parts of the executable as a document of CycloneDX 1.6 (cyclonedx.org/docs/1.6/json), without a time or a serial
 * number of its own: the same commit has the same document.
 *
 * @param seconds time of the commit since 1970
 */
export function billOfMaterials(
  { version, commit, seconds }: { version: string; commit: string; seconds: number },
  packages: readonly Component[],
): string {
  const npm = packages.map(({ name, version: at, license }) => ({
    type: 'library',
    'bom-ref': `pkg:npm/${name.replace('@', '%40')}@${at}`,
    name,
    version: at,
    licenses: [{ expression: license }],
    purl: `pkg:npm/${name.replace('@', '%40')}@${at}`,
  }))
  const bun = {
    type: 'application',
    'bom-ref': `bun@${Bun.version}`,
    name: 'bun',
    version: Bun.version,
    licenses: [{ expression: 'MIT' }],
    purl: `pkg:npm/bun@${Bun.version}`,
    components: BUN_PARTS.map(({ name, license, source }) => ({
      type: 'library',
      'bom-ref': `bun@${Bun.version}#${encodeURIComponent(name.split(':', 1)[0] ?? name)}`,
      name,
      licenses: [{ expression: license }],
      externalReferences: [{ type: 'vcs', url: source }],
    })),
  }
  const document = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      timestamp: new Date(seconds * 1_000).toISOString(),
      component: {
        type: 'application',
        'bom-ref': `berth@${version}`,
        name: 'berth',
        version,
        licenses: [{ expression: 'MIT' }],
        properties: [{ name: 'commit', value: commit }],
      },
    },
    components: [bun, ...npm],
    dependencies: [{ ref: `berth@${version}`, dependsOn: [bun, ...npm].map((one) => one['bom-ref']) }],
  }
  return `${JSON.stringify(document, null, 2)}\n`
}
