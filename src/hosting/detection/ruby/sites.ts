import { fieldsOf } from '../../../runtime/is-object.ts'
import { type Candidate, startFiles } from '../candidate.ts'
import type { SourceDirectory } from '../source.ts'
import { anyVersion } from '../versions.ts'
import type { Gems } from './gems.ts'

/** A generator of pages. */
interface Generator {
  readonly name: string
  readonly gem: string
  /** Files that it reads; one of them has to be there. */
  readonly files: readonly string[]
  /** What builds the pages, with `RUN` where a program of gems is called, and `FILE` for the file. */
  readonly command: string
  readonly folder: string
}

const GENERATORS: readonly Generator[] = [
  // The addresses of pages are those of the root, wherever else they will be published.
  {
    name: 'Jekyll',
    gem: 'jekyll',
    files: ['_config.yml', '_config.yaml', '_config.toml'],
    command: `printf 'url: ""\\nbaseurl: ""\\n' > "$TMPDIR/root.yml" && RUN jekyll build --config FILE,"$TMPDIR/root.yml" --destination _site`,
    folder: '_site',
  },
  {
    name: 'Middleman',
    gem: 'middleman',
    files: ['config.rb'],
    command: 'RUN middleman build',
    folder: 'build',
  },
  {
    name: 'Nanoc',
    gem: 'nanoc',
    files: ['nanoc.yaml', 'config.yaml'],
    command: 'RUN nanoc compile',
    folder: 'output',
  },
  {
    name: 'Bridgetown',
    gem: 'bridgetown',
    files: ['bridgetown.config.yml', 'config/initializers.rb'],
    command: 'RUN bridgetown build',
    folder: 'output',
  },
]

/** Returns the app of a directory that a generator of Ruby makes pages of; null for none. */
export async function findSite(directory: SourceDirectory, gems: Gems | null): Promise<Candidate | null> {
  for (const { name, gem, files, command, folder } of GENERATORS) {
    const file = directory.first(files)
    const isListed = gems !== null && (gems.has(gem) || (gem === 'jekyll' && gems.has('github-pages')))
    const isPlain = gem === 'jekyll' && !isListed && (await isJekyll(directory, file))
    if (file === null || !(isListed || isPlain)) continue
    return {
      kind: name,
      strength: 'pages',
      install: gems?.install ?? null,
      // Beside a Gemfile it runs with those gems alone, however it is called.
      build: command.replace('RUN ', gems === null ? '' : 'bundle exec ').replace('FILE', file),
      start: startFiles(folder, false),
      standsAlone: true,
      variables: { ...gems?.variables, JEKYLL_ENV: 'production', LANG: 'C.UTF-8' },
      tools: gems?.tools ?? [anyVersion('jekyll')],
      evidence: [
        await directory.evidence(file),
        ...(gems === null
          ? []
          : [await directory.evidence(gems.file, new RegExp(`["'](?:${gem}|github-pages)["']`))]),
      ],
    }
  }
  return null
}

/** Reports whether a directory without a list of gems is a site of Jekyll: one of its own directories is beside its settings. */
async function isJekyll(directory: SourceDirectory, file: string | null): Promise<boolean> {
  if (file === null || directory.has('package.json')) return false
  const settings = fieldsOf(file.endsWith('.toml') ? null : await directory.yaml(file))
  const isPage = directory.files.some((path) =>
    /^(?:_(?:posts|layouts|includes|pages)\/|(?:[^/]+\/)?index\.(?:md|html)$)/.test(path),
  )
  return isPage || 'theme' in settings || 'remote_theme' in settings
}
