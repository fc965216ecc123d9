import { UsageError } from '../../errors.ts'
import { action } from '../command.ts'
import { textOption } from '../options.ts'

/** `berth upgrade` */
export const upgrade = action({
  usage: 'upgrade',
  summary: 'replace this executable by another version of it',
  description: 'Replaces this executable by another version of berth, from a file.',
  access: 'none',
  json: 'the versions before and after, and where the older one is, as JSON',
  options: {
    from: textOption('FILE', 'the executable, or the release archive (.tar.gz) that contains it'),
    sha256: textOption('HASH', 'hash of FILE; by default SHA256SUMS beside FILE has it'),
  },
  help: `
berth downloads nothing: get the archive for this system and SHA256SUMS from the release page. The older executable is kept
beside the new one, as berth.previous. An executable for another system, or one that knows only an older schema of the data
directory, is refused. What npm, pip, dpkg, Homebrew or Nix has installed they upgrade: berth prints the command.

Example:
  berth upgrade --from ~/Downloads/berth-0.2.0-linux-x64.tar.gz
`,
  async run({ session, options: { from, sha256 }, print }) {
    if (from === undefined)
      throw new UsageError('The new version is missing. Name its file: berth upgrade --from FILE')
    const { upgradeFrom } = await import('../upgrade.ts')
    return print(await upgradeFrom(from, sha256, session.context), ({ before, after, previous }) =>
      previous === null
        ? `This is berth ${after} already. Nothing was changed.\n`
        : `berth ${before} was replaced by berth ${after}. The older one is ${previous}.\n`,
    )
  },
})
