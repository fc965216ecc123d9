import { type Detector, startFiles } from './detected-app.ts'

/** Usual directories of pages; built files precede their sources. */
const DIRECTORIES = ['dist', 'build', 'public', '']

/** Detects static files: a Staticfile, or an index page. */
export const detectStatic: Detector = async (app) => {
  const found = { kind: 'static files', install: null, build: null, bin: null, needs: [] }
  const staticfile = await app.text('Staticfile')
  if (staticfile !== null) {
    const [, root = ''] = /^[ \t]*root:[ \t]*['"]?([^'"\s]+)/m.exec(staticfile) ?? []
    const fallback = /^[ \t]*pushstate:[ \t]*enabled/m.test(staticfile)
    const names = root.split('/').filter((name) => !['', '.', '..'].includes(name))
    return { ...found, start: startFiles(names.join('/'), fallback) }
  }
  for (const directory of DIRECTORIES) {
    const page = directory === '' ? 'index.html' : `${directory}/index.html`
    if (await app.has(page)) return { ...found, start: startFiles(directory, false) }
  }
  return null
}
