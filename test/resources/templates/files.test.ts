import { describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { compile } from '../../../scripts/compile.ts'
import { TemplateCatalog } from '../../../src/resources/templates/catalog.ts'

const source = join(import.meta.dir, '../../../src/resources/templates')
const apps = join(source, 'apps')
const catalog = new TemplateCatalog()
const ids = catalog.list().map(({ id }) => id)

/** What the folder of a template holds: path → permission bits and bytes. */
function folderOf(id: string): Record<string, string> {
  const root = join(apps, id)
  return Object.fromEntries(
    readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => {
        const path = join(parentPath, name)
        const mode = statSync(path).mode & 0o111 ? '755' : '644'
        return [relative(root, path), `${mode} ${readFileSync(path).toString('base64')}`]
      }),
  )
}

describe('the files of a template', () => {
  test.each(ids)('%s: are those of its folder, dotfiles too, sorted', async (id) => {
    const files = [...(await catalog.files(id))]
    expect(asRecord(files)).toEqual(folderOf(id))
    const paths = files.map(({ path }) => path)
    expect(paths).toEqual(paths.toSorted())
    expect(paths).toContain('README.md')
    expect(paths).toContain('.gitignore')
  })

  test.each(['nothing', '', '.', '..', 'bun-api/src', '../apps/bun-api'])(
    'of %p, which is no template, are refused with the names of those there are',
    (id) => {
      expect(() => catalog.find(id)).toThrow('There are: static-site, ')
      expect(catalog.files(id)).rejects.toMatchObject({ code: 'bad_request' })
    },
  )

  test('are all for git: what running an app in its folder leaves there would be shipped with it', () => {
    const { exitCode, stdout } = Bun.spawnSync(['git', 'status', '--porcelain', '--ignored', '--', '.'], {
      cwd: apps,
    })
    // A source archive has no git.
    if (exitCode !== 0) return
    const ignored = stdout
      .toString()
      .split('\n')
      .filter((line) => line.startsWith('!!'))
    expect(ignored).toEqual([])
  })

  test('are the same inside an executable', () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-embedded-'))
    try {
      const probe = join(folder, 'probe.ts')
      writeFileSync(
        probe,
        `import { TemplateCatalog } from ${JSON.stringify(join(source, 'catalog.ts'))}
         const print = async () => {
           const catalog = new TemplateCatalog()
           const all = await Promise.all(catalog.list().map(async ({ id }) => [id, [...await catalog.files(id)]]))
           console.log(JSON.stringify(all.map(([id, files]) => [id, files.map((file) => ({
             ...file, bytes: Buffer.from(file.bytes).toString('base64') }))])))
         }
         print()`,
      )
      compile(probe, join(folder, 'probe'))
      const { stdout, stderr } = Bun.spawnSync([join(folder, 'probe')], { cwd: folder })
      expect(stderr.toString()).toBe('')
      const embedded: [string, { path: string; bytes: string; mode: number }[]][] = JSON.parse(
        stdout.toString(),
      )
      expect(embedded.map(([id]) => id)).toEqual(ids)
      for (const [id, files] of embedded) {
        const decoded = files.map((file) => ({ ...file, bytes: Buffer.from(file.bytes, 'base64') }))
        expect(asRecord(decoded)).toEqual(folderOf(id))
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

function asRecord(files: readonly { path: string; bytes: Uint8Array; mode: number }[]) {
  return Object.fromEntries(
    files.map(({ path, bytes, mode }) => [
      path,
      `${mode.toString(8)} ${Buffer.from(bytes).toString('base64')}`,
    ]),
  )
}
