import { badRequest } from '../../errors.ts'
import type { TemplateFile } from './files.ts'
import { type ProjectTemplate, TEMPLATE_IDS } from './model.ts'

/**
 * Every template of `TEMPLATE_IDS`: its label and what it is in a sentence. The files of each lie in `apps/ID/`; there is
 * nothing else to register.
 */
const TEMPLATES: Readonly<
  Record<(typeof TEMPLATE_IDS)[number], readonly [label: string, description: string]>
> = {
  'static-site': ['Static site', 'A page in plain HTML, CSS and JavaScript. Nothing to install or build.'],
  'bun-api': ['Bun HTTP API', 'A JSON API on Bun: routes, checked input, errors as JSON, tests.'],
  'sqlite-notes': [
    'Notes on SQLite',
    'Notes in a SQLite database: migrations, an API, a page to write them.',
  ],
  fullstack: ['Full-stack page', 'A poll with a TypeScript page and an API that reload as you edit them.'],
  'websocket-chat': ['WebSocket chat', 'Chat rooms over WebSockets: who is there, history, reconnecting.'],
  'python-api': ['Python API', "Text statistics as an API and a page, on Python's standard library alone."],
}

/** The templates that projects are made from. They are part of berth: the list is the same for everybody. */
export class TemplateCatalog {
  readonly #templates: readonly ProjectTemplate[] = TEMPLATE_IDS.map((id) => {
    const [label, description] = TEMPLATES[id]
    const defaults = { name: label, description, visibility: 'private', lifecycle: 'persistent' } as const
    return { id, label, description, defaults }
  })

  /** Returns all templates, simplest first. */
  list(): ProjectTemplate[] {
    return [...this.#templates]
  }

  /** Returns the template of this id. @throws BerthError 400 that names those there are */
  find(id: string): ProjectTemplate {
    const found = this.#templates.find((template) => template.id === id)
    if (found) return found
    const ids = this.#templates.map((template) => template.id)
    throw badRequest(`There is no template ${JSON.stringify(id)}. There are: ${ids.join(', ')}.`)
  }

  /**
   * Returns the first files of a project made from a template.
   *
   * @throws BerthError 400 if there is no such template
   */
  async files(id: string): Promise<Iterable<TemplateFile>> {
    const { id: directory } = this.find(id)
    const { readTemplate } = await import('./files.ts')
    return readTemplate(directory)
  }
}
