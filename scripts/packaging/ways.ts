import type { Release } from './release.ts'

/** A way to get berth. */
interface Way {
  readonly name: string
  readonly systems: string
  /** What the tests of a release did with it; null if they have not run it. */
  readonly run: string | null
  /** What was checked where it was not run. */
  readonly checked?: string
}

const WAYS: readonly Way[] = [
  {
    name: 'archive (`.tar.gz`, `.zip`)',
    systems: 'Linux x64, glibc',
    run: 'on a root with a C library and a shell alone; a second checkout gives the same bytes',
  },
  {
    name: 'archive',
    systems: 'Linux arm64, glibc',
    run: 'emulated by qemu: a server, a command, files, an app',
  },
  { name: 'archive', systems: 'Linux x64 and arm64, musl', run: null, checked: 'built; needs `libstdc++`' },
  {
    name: 'archive',
    systems: 'macOS arm64 and x64',
    run: null,
    checked: 'built; the signature of arm64 is right; isolation `seatbelt (untested)`',
  },
  {
    name: 'npm',
    systems: 'Linux x64, glibc',
    run: 'from a local registry, on a root with Node.js alone: a test, the tour, removed',
  },
  {
    name: 'PyPI',
    systems: 'Linux x64, glibc',
    run: 'from a local index, on a root with Python alone: a test, the tour, removed',
  },
  {
    name: '`install.sh`',
    systems: 'Linux x64, glibc',
    run: 'on a root with curl alone: a test, the tour, removed; cut at each tenth, changed, by wget',
  },
  { name: 'Debian package', systems: 'amd64', run: 'by dpkg on a root: the tour, purged' },
  {
    name: 'image for containers',
    systems: 'Linux x64',
    run: 'by Docker Engine 20.10, with Landlock as isolation: a test, the tour, removed',
  },
  { name: 'systemd user unit', systems: 'Linux', run: null, checked: '`systemd-analyze verify`' },
  {
    name: 'GitHub Action',
    systems: 'Linux x64',
    run: null,
    checked: 'its scripts run as a runner does, on a root',
  },
  {
    name: 'GitLab template',
    systems: 'Linux x64',
    run: null,
    checked: 'its script runs as a runner does, on a root',
  },
  { name: 'Homebrew formula', systems: 'macOS, Linux', run: null, checked: '`ruby -c`' },
  { name: 'Nix flake', systems: 'Linux, macOS', run: null, checked: '`nix-instantiate --parse`' },
]

/** Returns the table of ways to get berth, in Markdown. */
export function waysTable(): string {
  const rows = WAYS.map(({ name, systems, run, checked }) => {
    const state = run === null ? `**not run by us**${checked ? `: ${checked}` : ''}` : `run by us: ${run}`
    return `| ${name} | ${systems} | ${state} |\n`
  })
  return `| way | systems | |\n|---|---|---|\n${rows.join('')}`
}

/** Returns the commands by which a person publishes a release, each from the directory of the release. */
export const publishCommands = ({ version, owner }: Release): string => `To publish it, from there:

  ssh-keygen -Y sign -n berth -f KEY SHA256SUMS               # if it is not signed yet (--sign KEY)
  gh release create v${version} --verify-tag *.tar.gz *.zip *.deb *.json *.yml install.sh SHA256SUMS* THIRD-PARTY-LICENSES.txt
  gh attestation verify berth-${version}-linux-x64.tar.gz --owner ${owner}    # after the workflow has attested it
  for file in npm/${owner}-berth-*-*.tgz npm/${owner}-berth-${version}.tgz; do npm publish --provenance "$file"; done
  twine upload --attestations pypi/*.whl
  --provenance and --attestations need the identity of a workflow (OIDC): leave them out elsewhere.
  repositories/setup-berth and repositories/homebrew-tap are pushed as repositories of their own, tagged v${version}.
  nix/release.json belongs beside scripts/packaging/nix/flake.nix, in the next commit.
`
