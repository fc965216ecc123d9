import { Elysia } from 'elysia'
import { compressed } from '../../compressed.ts'
import { Html, html } from '../../pages/html.ts'
import { navigation, type Page, pageResponse } from '../../pages/page.ts'
import { refuseBadQuery } from '../../request-checks.ts'
import { type GuidePage, guideFile, guideIndex, guidePage, guidePages } from './pages.ts'
import { type GuideMatch, searchGuide } from './search.ts'

const HIDDEN = { detail: { hide: true } }

/** The path of the guide's index. Pages are below it. */
export const GUIDE_PATH = '/docs/guide'

/** Most matches that a search shows. */
const MATCHES = 40

/** Returns the path of the reference of an operation; null if there is no such operation. */
type ReferenceOf = (method: string, path: string) => string | null

/** Returns the header of a page for the browser that asks; null for a browser that is not signed in. */
type HeaderFor = (request: Request) => Promise<Html | null>

/** What a page of the guide shows. */
interface Content extends Pick<Page, 'title' | 'body' | 'status'> {
  /** Whether it has words of the request. */
  readonly hasSentWords?: boolean
}

/** Serves the guide as pages and as Markdown, and `/llms.txt`, by which language models find it (llmstxt.org). */
export const guideRoutes = (referenceOf: ReferenceOf, headerFor: HeaderFor) => {
  const show = async (request: Request, { hasSentWords = false, ...content }: Content): Promise<Response> => {
    const header = await headerFor(request)
    const response = pageResponse({
      ...content,
      header: header ?? navigation(GUIDE_PATH),
      // The header of a session has its token.
      headers: header === null ? { 'cache-control': 'no-cache' } : {},
    })
    return header !== null && hasSentWords ? response : compressed(request, response)
  }
  return new Elysia({ name: 'berth/guide' })
    .onBeforeHandle(refuseBadQuery)
    .get(
      GUIDE_PATH,
      async ({ request }) => {
        const sought = new URL(request.url).searchParams.get('q')?.trim() ?? ''
        return show(request, await (sought === '' ? indexPage() : searchPage(sought)))
      },
      HIDDEN,
    )
    .get(
      `${GUIDE_PATH}/*`,
      async ({ request, params }) => {
        const found = await below(params['*'], referenceOf)
        return found instanceof Response ? compressed(request, found) : show(request, found)
      },
      HIDDEN,
    )
    .get('/llms.txt', async ({ request }) => compressed(request, text(await llmsText())), HIDDEN)
}

/** Returns the titles of all pages by their names. */
const guideTitles = async (): Promise<ReadonlyMap<string, string>> =>
  new Map((await guidePages()).map(({ name, title }) => [name, title]))

/** Returns what is at a path below the guide's: a page, or the response with a file. */
async function below(path: string, referenceOf: ReferenceOf): Promise<Content | Response> {
  const page = await guidePage(path.replace(/\.md$/, ''))
  if (page)
    return path.endsWith('.md') ? text(page.markdown, 'text/markdown') : contentPage(page, referenceOf)
  const file = await guideFile(path)
  if (file === null) return missingPage(path)
  return Array.isArray(file) ? directoryPage(path, file) : text(file)
}

const text = (content: string | Uint8Array, type = 'text/plain'): Response =>
  new Response(typeof content === 'string' ? content : Buffer.from(content), {
    headers: {
      'content-type': `${type}; charset=utf-8`,
      'cache-control': 'no-cache',
      'x-content-type-options': 'nosniff',
    },
  })

async function indexPage(): Promise<Content> {
  const groups = await guideIndex()
  const titles = await guideTitles()
  return {
    title: 'Guide',
    body: html`${searchForm('')}
${groups.map(
  ({ heading, entries }) => html`<h2>${heading}</h2>
<ul class="pages">
${entries.map(
  ({ name, purpose }) =>
    html`<li><a href="${GUIDE_PATH}/${name}">${titles.get(name) ?? name}</a> <span>${withCode(purpose)}</span></li>\n`,
)}</ul>\n`,
)}
<h2>Reference</h2>
<ul class="pages">
<li><a href="/docs">API</a> <span>every operation of the API, to read and to try</span></li>
<li><a href="/_berth/docs">Control API</a> <span>the operations by which tests steer an instance</span></li>
</ul>`,
  }
}

/** Renders a line of text in which words in backticks are code. */
const withCode = (line: string): Html[] =>
  line.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))

async function searchPage(sought: string): Promise<Content> {
  const matches = await searchGuide(sought.split(/\s+/))
  return {
    title: 'Guide',
    body: html`${searchForm(sought)}
<p class="quiet" role="status">${matches.length === 0 ? html`Nothing has all of these words. Try fewer.` : `${matches.length} ${matches.length === 1 ? 'part has' : 'parts have'} these words.`}</p>
<ul class="entries">
${matches.slice(0, MATCHES).map(matchEntry)}</ul>`,
    hasSentWords: true,
  }
}

const matchEntry = ({ page, heading, fragment, excerpt }: GuideMatch): Html =>
  html`<li><div class="what"><p><a href="${GUIDE_PATH}/${page.name}${fragment && `#${fragment}`}">${heading === page.title ? page.title : `${page.title}: ${heading}`}</a></p>
<p class="quiet">${excerpt}</p></div></li>\n`

const searchForm = (sought: string): Html =>
  html`<form class="search" role="search" action="${GUIDE_PATH}"><label for="q" class="hidden">Search the guide</label>
<input type="search" id="q" name="q" value="${sought}" placeholder="Search the guide"><button>Search</button></form>`

/**
 * Renders a page. Links to other pages lead to their URLs, and are named by their titles where they name the file. The
 * request of an operation, such as `POST /servers`, becomes a link to its reference.
 */
async function contentPage(page: GuidePage, referenceOf: ReferenceOf): Promise<Content> {
  const titles = await guideTitles()
  const content = page.markdown.replace(/^# .+\n/, '')
  const linked = withoutCode(content, (prose) =>
    prose.replaceAll(/\[([^\]]+)\]\(([^)\s]+)\)/g, (link, label: string, target: string) => {
      if (/^(https?:|#)/.test(target)) return link
      if (target.startsWith('../')) return label
      const [file = '', fragment] = target.split('#')
      const name = file.replace(/\.md$/, '')
      const shown = label === file ? (titles.get(name) ?? label) : label
      return `[${shown}](${GUIDE_PATH}/${name}${fragment ? `#${fragment}` : ''})`
    }),
  )
  const rendered = Bun.markdown.html(linked, { headings: { ids: true } })
  return {
    title: page.title,
    body: html`<p class="quiet"><a href="${GUIDE_PATH}">Guide</a> · <a href="${GUIDE_PATH}/${page.name}.md">as Markdown</a> · in a terminal: <code>berth guide ${page.name}</code></p>
<div class="prose">${new Html(scrollable(withReferences(rendered, referenceOf)))}</div>`,
  }
}

/** Matches a request as code, with its path up to the query, outside of links and of blocks of code. */
const REQUEST = /<code>(GET|POST|PUT|PATCH|DELETE) (\/[^\s<?]*)([^<]*)<\/code>(?!<\/(?:a|pre)>)/g

const withReferences = (rendered: string, referenceOf: ReferenceOf): string =>
  rendered.replaceAll(REQUEST, (whole, method: string, path: string) => {
    const reference = referenceOf(method, path)
    return reference === null ? whole : html`<a href="${reference}">${new Html(whole)}</a>`.text
  })

/** Lets wide tables and code scroll, also by the keyboard, and leaves no heading empty. */
const scrollable = (rendered: string): string =>
  rendered
    .replaceAll('<pre>', '<pre tabindex="0">')
    .replaceAll('<table>', '<div class="scroll" tabindex="0"><table>')
    .replaceAll('</table>', '</table></div>')
    // The first column of many tables names what the row is about and needs no heading.
    .replaceAll('<th></th>', '<td></td>')

/** Changes the parts of a Markdown text that are not in a block of code. */
const withoutCode = (markdown: string, change: (prose: string) => string): string =>
  markdown
    .split(/^(```[\s\S]*?^```$)/m)
    .map((part) => (part.startsWith('```') ? part : change(part)))
    .join('')

const directoryPage = (path: string, names: readonly string[]): Content => ({
  title: path,
  body: html`<p class="quiet"><a href="${GUIDE_PATH}">Guide</a></p>
<ul>
${names.map((name) => html`<li><a href="${GUIDE_PATH}/${path}/${name.replace('/', '')}">${name}</a></li>\n`)}</ul>`,
})

const missingPage = (path: string): Content => ({
  title: 'No such page',
  status: 404,
  body: html`<p>The guide has no page <code>${path}</code>. <a href="${GUIDE_PATH}">All pages</a></p>${searchForm('')}`,
  hasSentWords: true,
})

async function llmsText(): Promise<string> {
  const titles = await guideTitles()
  const groups = (await guideIndex()).map(({ heading, entries }) =>
    [
      `## ${heading}`,
      '',
      ...entries.map(
        ({ name, purpose }) => `- [${titles.get(name) ?? name}](${GUIDE_PATH}/${name}.md): ${purpose}`,
      ),
    ].join('\n'),
  )
  return `# berth

> A local server-provisioning and agent-task API in one executable: servers that run commands and agents, builds,
> projects behind URLs, webhooks, and faults on request for tests.

Every request but for these pages needs \`Authorization: Bearer KEY\`. \`berth env\` prints the address and a key.

## Reference

- [OpenAPI document of the API](/openapi.json): every operation with its schemas and examples
- [OpenAPI document of the control API](/_berth/openapi.json): the operations by which tests steer an instance
- \`/mcp\`: the same operations as tools for MCP hosts

${groups.join('\n\n')}
`
}
