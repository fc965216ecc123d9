import { packageAction } from './action/package.ts'
import { packageForDebian } from './debian/package.ts'
import { packageGitlab } from './gitlab/package.ts'
import { packageForHomebrew } from './homebrew/package.ts'
import { packageInstaller } from './install/package.ts'
import { packageForNix } from './nix/package.ts'
import { packageForNpm } from './npm/package.ts'
import { packageForPypi } from './pypi/package.ts'
import type { Release } from './release.ts'

/** Builds the packages of a release, each in its own directory or file of `release.out`. */
export async function packageAll(release: Release): Promise<void> {
  await packageForNpm(release)
  packageForPypi(release)
  packageForDebian(release)
  packageForHomebrew(release)
  packageForNix(release)
  // The last two have install.sh, or its hash, in them.
  packageInstaller(release)
  packageAction(release)
  packageGitlab(release)
}
