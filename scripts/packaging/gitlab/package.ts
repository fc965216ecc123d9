import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fill, type Release } from '../release.ts'

/** Writes the template of GitLab, which knows the hash of install.sh. */
export function packageGitlab({ owner, version, out }: Release): void {
  const hash = new Bun.CryptoHasher('sha256').update(readFileSync(join(out, 'install.sh'))).digest('hex')
  const template = readFileSync(join(import.meta.dir, 'berth.gitlab-ci.yml'), 'utf8')
  writeFileSync(join(out, 'berth.gitlab-ci.yml'), fill(template, { owner, version, hash }))
}
