import { type Candidate, type Provider, startFiles } from '../candidate.ts'

/** Usual directories of pages; built files precede their sources. */
const DIRECTORIES = ['dist', 'build', 'public', '']

/** Static files: a Staticfile, or an index page. */
export const staticFiles: Provider = {
  name: 'static',
  marks: /^(?:Staticfile|index\.html)$/,
  async look(directory) {
    const found = { kind: 'static files', install: null, build: null, tools: [] }
    const staticfile = await directory.text('Staticfile')
    if (staticfile !== null) {
      const [, root = ''] = /^[ \t]*root:[ \t]*['"]?([^'"\s]+)/m.exec(staticfile) ?? []
      const fallback = /^[ \t]*pushstate:[ \t]*enabled/m.test(staticfile)
      const names = root.split('/').filter((name) => !['', '.', '..'].includes(name))
      const evidence = [await directory.evidence('Staticfile')]
      return [{ ...found, strength: 'pages', start: startFiles(names.join('/'), fallback), evidence }]
    }
    for (const folder of DIRECTORIES) {
      const page = folder === '' ? 'index.html' : `${folder}/index.html`
      if (!directory.has(page)) continue
      const candidate: Candidate = {
        ...found,
        strength: 'weak',
        start: startFiles(folder, false),
        evidence: [],
      }
      return [{ ...candidate, evidence: [await directory.evidence(page)] }]
    }
    return []
  },
}
