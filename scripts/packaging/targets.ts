/** A system that executables are built for. */
export interface Target {
  /** As in the names of archives and packages, such as `linux-x64-musl`. */
  readonly name: string
  readonly system: 'linux' | 'darwin'
  readonly processor: 'x64' | 'arm64'
  /** Null on macOS, which has its own. */
  readonly libc: 'glibc' | 'musl' | null
  /** The npm package of the Bun that its executable begins with. */
  readonly bun: string
  /** Of that package's archive at the pinned version (w3.org/TR/sri). */
  readonly integrity: string
  /** What `bun build --target` calls it. */
  readonly bunTarget: string
  /** The platform tag of its wheel (packaging.python.org, platform compatibility tags). */
  readonly wheelTag: string
}

/**
 * The systems, in the order of the table. On x64 Bun's build for processors without AVX2 is used: the pinned version of
 * `bun` on npm is that very file for glibc, so nobody loses anything by it.
 */
export const TARGETS: readonly Target[] = [
  {
    ...{ name: 'linux-x64', system: 'linux', processor: 'x64', libc: 'glibc' },
    ...{ bun: '@oven/bun-linux-x64-baseline', bunTarget: 'bun-linux-x64-baseline' },
    integrity:
      'sha512-s8yMwYcFnnrA178gji0gZbkE2WVDej/Ti1x770oPfihxyRxSMNhGhiAQNXV53aDeraZxksdvKV/RAdQBCd0qPA==',
    wheelTag: 'manylinux_2_17_x86_64',
  },
  {
    ...{ name: 'linux-x64-musl', system: 'linux', processor: 'x64', libc: 'musl' },
    ...{ bun: '@oven/bun-linux-x64-musl-baseline', bunTarget: 'bun-linux-x64-musl-baseline' },
    integrity:
      'sha512-cWJhU8h0+MiUgpSt99sQhjxLIIosKEcKYdtKddohokUvAuN6jKOy7g7+QDTZTXtwHxz93wL3BX+L6wXVPDUH3A==',
    wheelTag: 'musllinux_1_2_x86_64',
  },
  {
    ...{ name: 'linux-arm64', system: 'linux', processor: 'arm64', libc: 'glibc' },
    ...{ bun: '@oven/bun-linux-aarch64', bunTarget: 'bun-linux-arm64' },
    integrity:
      'sha512-4BXmsSKnjOrlGWqZV4x/oWa7AVoR+B6lCXddMzOAXBIm3t50eslg9wb66gmtW1AamEQ1l1CDvmmruysEhqOWMg==',
    wheelTag: 'manylinux_2_17_aarch64',
  },
  {
    ...{ name: 'linux-arm64-musl', system: 'linux', processor: 'arm64', libc: 'musl' },
    ...{ bun: '@oven/bun-linux-aarch64-musl', bunTarget: 'bun-linux-arm64-musl' },
    integrity:
      'sha512-XCNc+WvvMAdNNb+OWTogpy+N9wm62fkVeEVLb6how0RZhW5LPi6c7BlkeVCuWps7XjEl2saFpHFa20/1E+PAHg==',
    wheelTag: 'musllinux_1_2_aarch64',
  },
  {
    ...{ name: 'darwin-arm64', system: 'darwin', processor: 'arm64', libc: null },
    ...{ bun: '@oven/bun-darwin-aarch64', bunTarget: 'bun-darwin-arm64' },
    integrity:
      'sha512-4MIFXHmctH2EhAxLXm2/qxNtv17dFtLJylvaOCsrgq6KSqHTs6eW5YSrJjRbJxYUJaR901fsN8JfZOa+CsWpWQ==',
    wheelTag: 'macosx_13_0_arm64',
  },
  {
    ...{ name: 'darwin-x64', system: 'darwin', processor: 'x64', libc: null },
    ...{ bun: '@oven/bun-darwin-x64-baseline', bunTarget: 'bun-darwin-x64-baseline' },
    integrity:
      'sha512-zqfLA5A4B+hYMh5WYzYSot3uZ06FzhdP0OEwQisEzdirYtXGj5cQFlfy31BGfNsAsk1Gd/w/OxJ/jqqJ3cMclw==',
    wheelTag: 'macosx_13_0_x86_64',
  },
]

/** Returns the target of a name. @throws Error if there is none */
export function targetNamed(name: string): Target {
  const found = TARGETS.find((target) => target.name === name)
  if (found === undefined)
    throw new Error(
      `There is no target ${name}: choose of ${TARGETS.map((target) => target.name).join(', ')}.`,
    )
  return found
}
