/** A version of a package manager that comes with a release of berth, with the SHA-256 of its archive. */
interface Pin {
  readonly version: string
  readonly sha256: string
}

/** A package manager that is published as a package of npm. */
export interface NpmProgram {
  /** Returns the package that a version is in. */
  readonly package: (version: string) => string
  /** Path in its archive of what to run with Node.js, by the name under which it is called. */
  readonly entries: Readonly<Record<string, string>>
  /** The versions that berth comes with; the first is for projects that name none. */
  readonly pins: readonly [Pin, ...Pin[]]
}

/** Package managers of JavaScript. */
export const NPM_PROGRAMS: readonly NpmProgram[] = [
  {
    package: () => 'npm',
    entries: { npm: 'package/bin/npm-cli.js', npx: 'package/bin/npx-cli.js' },
    pins: [{ version: '10.9.4', sha256: '4bfba8a0c823024d1926ec9d97a37a00eb60fd2adf44b3d34a686fc32e8f51e4' }],
  },
  {
    package: () => 'pnpm',
    entries: { pnpm: 'package/bin/pnpm.cjs', pnpx: 'package/bin/pnpx.cjs' },
    pins: [
      { version: '10.15.0', sha256: '84c19e788d7d7ee248e4a6b7152f8ebba0f4fe7380a5f443ca17d76c030052d2' },
      { version: '9.15.9', sha256: 'cf86a7ad764406395d4286a6d09d730711720acc6d93e9dce9ac7ac4dc4a28a7' },
      { version: '8.15.9', sha256: 'daa27a0b541bc635323ff96c2ded995467ff9fe6d69ff67021558aa9ad9dcc36' },
      { version: '7.33.7', sha256: 'd1581d46ed10f54ff0cbdd94a2373b1f070202b0fbff29f27c2ce01460427043' },
    ],
  },
  {
    package: (version) =>
      version.startsWith('1.') || version.startsWith('0.') ? 'yarn' : '@yarnpkg/cli-dist',
    entries: { yarn: 'package/bin/yarn.js', yarnpkg: 'package/bin/yarn.js' },
    pins: [
      { version: '1.22.22', sha256: 'c17d3797fb9a9115bf375e31bfd30058cac6bc9c3b8807a3d8cb2094794b51ca' },
      { version: '4.9.2', sha256: '7c1f573e4cbd6d98fa5e7aa4b8dd5c1fd58b057aefd8042941ab2b7f1eedf05b' },
    ],
  },
]

/** uv, which is published as wheels with a program in each. */
export const UV = {
  version: '0.13.9',
  names: ['uv', 'uvx'],
  /** The end of the wheel's name, and the SHA-256 of that of the version above, by processor. */
  wheels: {
    x64: {
      tag: /^py3-none-manylinux_2_17_x86_64\b/,
      sha256: 'd7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19',
    },
    arm64: {
      tag: /^py3-none-manylinux_2_17_aarch64\b/,
      sha256: '5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe',
    },
  } as Readonly<Record<string, { tag: RegExp; sha256: string }>>,
} as const
