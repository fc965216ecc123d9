import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ArchiveFile, zip } from '../archive.ts'
import { fill, type Release } from '../release.ts'

/**
 * Writes a wheel for each system (packaging.python.org, binary distribution format). Its scripts are the executable, and a
 * line of shell that has the package's name; no Python runs when berth does.
 */
export function packageForPypi({ owner, version, builds, out }: Release): void {
  const name = `${owner}-berth-cli`
  const normalized = name.replaceAll('-', '_')
  const info = `${normalized}-${version}.dist-info`
  const scripts = `${normalized}-${version}.data/scripts`
  const read = (file: string): string => readFileSync(join(import.meta.dir, file), 'utf8')
  mkdirSync(join(out, 'pypi'))
  for (const { target, bytes } of builds) {
    const metadata = `Metadata-Version: 2.1
Name: ${name}
Version: ${version}
Summary: A local, self-hosted server-provisioning and agent-task API in one executable
Home-page: https://github.com/${owner}/berth
License: MIT
License-File: LICENSE
Requires-Python: >=3.8
Description-Content-Type: text/markdown

${fill(read('README.md'), { name })}`
    const files: ArchiveFile[] = [
      { path: `${scripts}/berth`, bytes, isProgram: true },
      { path: `${scripts}/${name}`, bytes: Buffer.from(read('alias.sh')), isProgram: true },
      { path: `${info}/METADATA`, bytes: Buffer.from(metadata) },
      {
        path: `${info}/WHEEL`,
        bytes: Buffer.from(
          `Wheel-Version: 1.0\nGenerator: berth\nRoot-Is-Purelib: false\nTag: py3-none-${target.wheelTag}\n`,
        ),
      },
      { path: `${info}/LICENSE`, bytes: readFileSync(join(import.meta.dir, '../../../LICENSE')) },
    ]
    const record = `${info}/RECORD`
    const lines = files.map((file) => {
      const hash = new Bun.CryptoHasher('sha256').update(file.bytes).digest('base64url')
      return `${file.path},sha256=${hash.replace(/=+$/, '')},${file.bytes.length}\n`
    })
    const all = [...files, { path: record, bytes: Buffer.from(`${lines.join('')}${record},,\n`) }]
    const wheel = `${normalized}-${version}-py3-none-${target.wheelTag}.whl`
    writeFileSync(join(out, 'pypi', wheel), zip(all))
  }
}
