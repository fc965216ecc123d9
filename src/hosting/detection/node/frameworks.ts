import { fieldsOf } from '../../../runtime/is-object.ts'
import type { StartPlan } from '../../app-runtime/plan.ts'
import { startCommand, startFiles } from '../candidate.ts'
import type { SourceDirectory } from '../source.ts'
import { entryOfScript } from './entry.ts'
import { dependsOn, type PackageJson, resolveScript } from './package-json.ts'

/** How an app of a framework is built and started. */
export interface Framework {
  /** For people. */
  readonly name: string
  /** The command that builds it if the package has no script `build`; null for none. */
  readonly build: string | null
  readonly start: StartPlan
}

/** A web package under examination. */
export interface Candidate {
  readonly app: SourceDirectory
  readonly pkg: PackageJson
}

type Recognizer = (candidate: Candidate) => Promise<Framework | null> | Framework | null

/** Development servers for static files, which berth serves itself. */
const FILE_SERVERS =
  /^(?:[A-Z_]+=\S+\s+|cross-env\s+|npx\s+|bunx\s+)*(?:vite|astro|react-scripts|react-app-rewired|craco|ng|vue-cli-service|gatsby|docusaurus|eleventy|vitepress|parcel|webpack|webpack-dev-server|serve|http-server|live-server|sirv)\b(?![^&|;]*(?:&|\|\||;))/

/** Reports whether the package's start script runs its own server rather than a framework's tool. */
function hasOwnServer(pkg: PackageJson): boolean {
  const script = resolveScript(pkg, 'start')
  return script !== null && !FILE_SERVERS.test(script.trim())
}

/** Detects an app's framework. Returns null if there is none, or if its start script is more specific. */
export async function recognizeFramework(candidate: Candidate): Promise<Framework | null> {
  for (const recognize of RECOGNIZERS) {
    const framework = await recognize(candidate)
    if (framework !== null) return framework
  }
  return null
}

const config = (name: string): string[] =>
  ['ts', 'mjs', 'js', 'mts', 'cjs'].map((end) => `${name}.config.${end}`)

/** Returns the value of a string option in a configuration file's text; ignores comments. */
function option(text: string, name: string): string | null {
  // A comment that is not closed reaches to the end, so that what is in it is looked at once.
  const code = text.replace(/\/\*(?:[\s\S]*?\*\/|[\s\S]*)|(?<![:'"\w])\/\/.*$/gm, '')
  return new RegExp(`\\b${name}\\s*:\\s*['"\`]([^'"\`]+)['"\`]`).exec(code)?.[1] ?? null
}

/** Returns a path below a directory, without elements that are empty or leave the app. */
function inDirectory(directory: string, path: string): string {
  const names: string[] = []
  for (const name of `${directory}/${path}`.split('/')) {
    if (name === '..') names.pop()
    else if (name !== '' && name !== '.') names.push(name)
  }
  return names.join('/')
}

/**
 * Describes a framework whose build consists of files: its package, its output directory, and whether one page serves
 * all paths.
 */
function files(
  name: string,
  dependency: string,
  build: string,
  output: string,
  fallback: boolean,
): Recognizer {
  return ({ pkg }) => {
    if (!dependsOn(pkg, dependency) || hasOwnServer(pkg)) return null
    return { name, build, start: startFiles(output, fallback) }
  }
}

const next: Recognizer = async ({ app, pkg }) => {
  if (!dependsOn(pkg, 'next')) return null
  const script = resolveScript(pkg, 'start')
  const text = await app.textOf(config('next'))
  const output = option(text, 'output')
  if (output === 'export' && (script === null || !hasOwnServer(pkg) || /\bnext start\b/.test(script))) {
    return {
      name: 'Next.js (static)',
      build: 'bun run next build',
      start: startFiles(option(text, 'distDir') ?? 'out', false),
    }
  }
  // The app has its own server, which reads PORT.
  if (script !== null && !/\bnext\b/.test(script)) return null
  return {
    name: 'Next.js',
    build: 'bun run next build',
    start: startCommand('bun run next start -p $PORT -H $HOST'),
  }
}

const nuxt: Recognizer = ({ pkg }) => {
  if (!dependsOn(pkg, 'nuxt', 'nuxt3')) return null
  if (/\bnuxt generate\b/.test(resolveScript(pkg, 'build') ?? '')) {
    return {
      name: 'Nuxt (static)',
      build: 'bun run nuxt generate',
      start: startFiles('.output/public', false),
    }
  }
  return { name: 'Nuxt', build: 'bun run nuxt build', start: startCommand('node .output/server/index.mjs') }
}

const svelteKit: Recognizer = async ({ app, pkg }) => {
  if (!dependsOn(pkg, '@sveltejs/kit') || (hasOwnServer(pkg) && pkg.scripts.start !== undefined)) return null
  const text = await app.textOf(config('svelte'))
  const build = 'bun run vite build'
  if (text.includes('@sveltejs/adapter-static')) {
    const fallback = option(text, 'fallback') === 'index.html'
    return {
      name: 'SvelteKit (static)',
      build,
      start: startFiles(option(text, 'pages') ?? 'build', fallback),
    }
  }
  const out = option(text, 'out') ?? 'build'
  if (text.includes('@sveltejs/adapter-node'))
    return { name: 'SvelteKit', build, start: startCommand(`node ${out}`) }
  if (text.includes('svelte-adapter-bun')) {
    return { name: 'SvelteKit', build, start: startCommand(`bun ${out}/index.js`) }
  }
  // Adapters for hosts elsewhere leave nothing to run here; the preview runs any build.
  return {
    name: 'SvelteKit',
    build,
    start: startCommand('bun run vite preview --port $PORT --strictPort --host $HOST'),
  }
}

const astro: Recognizer = async ({ app, pkg }) => {
  if (!dependsOn(pkg, 'astro') || hasOwnServer(pkg)) return null
  const text = await app.textOf(config('astro'))
  const out = option(text, 'outDir') ?? 'dist'
  const build = 'bun run astro build'
  if (text.includes('@astrojs/node') && option(text, 'mode') !== 'middleware') {
    return { name: 'Astro', build, start: startCommand(`node ./${inDirectory('', out)}/server/entry.mjs`) }
  }
  if (option(text, 'output') === 'server') {
    // The build targets another host, so only the development server runs here.
    const command = 'NODE_ENV=development bun run astro dev --port $PORT --host $HOST'
    return { name: 'Astro (development server)', build: null, start: startCommand(command) }
  }
  return { name: 'Astro (static)', build, start: startFiles(inDirectory('', out), false) }
}

const reactRouter: Recognizer = async ({ app, pkg }) => {
  const [serve, tool] = dependsOn(pkg, '@react-router/dev')
    ? ['react-router-serve', 'react-router build']
    : dependsOn(pkg, '@remix-run/dev')
      ? ['remix-serve', 'remix vite:build']
      : []
  if (serve === undefined || tool === undefined) return null
  const name = serve === 'remix-serve' ? 'Remix' : 'React Router'
  const text = (await app.textOf(config('react-router'))) + (await app.textOf(config('vite')))
  if (/\bssr\s*:\s*false\b/.test(text)) {
    return {
      name: `${name} (single-page app)`,
      build: `bun run ${tool}`,
      start: startFiles('build/client', true),
    }
  }
  const start = pkg.scripts.start === undefined ? `${serve} ./build/server/index.js` : 'start'
  return { name, build: `bun run ${tool}`, start: startCommand(`bun run ${start}`) }
}

const angular: Recognizer = async ({ app, pkg }) => {
  if (!dependsOn(pkg, '@angular/core') || !(await app.has('angular.json')) || hasOwnServer(pkg)) return null
  const { output, server } = await readAngular(app)
  const build = 'bun run ng build'
  if (server !== null) return { name: 'Angular', build, start: startCommand(`node ${server}`) }
  return { name: 'Angular (single-page app)', build, start: startFiles(output, true) }
}

async function readAngular(app: SourceDirectory): Promise<{ output: string; server: string | null }> {
  const file = await app.json('angular.json')
  const projects = at(file, 'projects')
  const [first = 'app'] = Object.keys(typeof projects === 'object' ? (projects ?? {}) : {})
  const name = String(at(file, 'defaultProject') ?? first)
  const project = at(projects, name)
  const target = at(at(project, 'architect') ?? at(project, 'targets'), 'build')
  const options = at(target, 'options')
  const path = at(options, 'outputPath')
  const base = typeof path === 'string' ? path : String(at(path, 'base') ?? `dist/${name}`)
  const browser = at(path, 'browser') ?? 'browser'
  // Before Angular 17 the builder has no separate directory for the browser's files.
  const apart = !String(at(target, 'builder')).endsWith(':browser')
  const rendered =
    Boolean(at(options, 'ssr') ?? at(options, 'server')) && at(options, 'outputMode') !== 'static'
  return {
    output: apart ? inDirectory(base, String(browser)) : inDirectory('', base),
    server: rendered ? `${inDirectory('', base)}/server/server.mjs` : null,
  }
}

/** Returns a field of a value that may be an object. */
function at(value: unknown, name: string): unknown {
  return fieldsOf(value)[name]
}

const vite: Recognizer = async ({ app, pkg }) => {
  if (!dependsOn(pkg, 'vite') || hasOwnServer(pkg)) return null
  // Its own server, which uses Vite.
  if (pkg.scripts.start === undefined && (await entryOfScript(app, pkg, 'dev')) !== null) return null
  const text = await app.textOf(config('vite'))
  const root = option(text, 'root') ?? ''
  if (!(await app.has(inDirectory(root, 'index.html')))) return null
  const fallback = option(text, 'appType') !== 'mpa'
  const name = fallback ? 'Vite (single-page app)' : 'Vite'
  return {
    name,
    build: 'bun run vite build',
    start: startFiles(inDirectory(root, option(text, 'outDir') ?? 'dist'), fallback),
  }
}

const vitePress: Recognizer = ({ pkg }) => {
  if (!dependsOn(pkg, 'vitepress') || hasOwnServer(pkg)) return null
  const script =
    Object.values(pkg.scripts).find((one) => /\bvitepress build\b/.test(one)) ?? 'vitepress build'
  const root = /\bvitepress build\s+([\w./-]+)/.exec(script)?.[1] ?? ''
  const build = `bun run vitepress build${root === '' ? '' : ` ${root}`}`
  return { name: 'VitePress', build, start: startFiles(inDirectory(root, '.vitepress/dist'), false) }
}

const RECOGNIZERS: readonly Recognizer[] = [
  next,
  nuxt,
  svelteKit,
  astro,
  reactRouter,
  files('Gatsby', 'gatsby', 'bun run gatsby build', 'public', false),
  files('Create React App', 'react-scripts', 'bun run react-scripts build', 'build', true),
  angular,
  files('Vue CLI (single-page app)', '@vue/cli-service', 'bun run vue-cli-service build', 'dist', true),
  files('Docusaurus', '@docusaurus/core', 'bun run docusaurus build', 'build', false),
  files('Eleventy', '@11ty/eleventy', 'bun run eleventy', '_site', false),
  vitePress,
  vite,
  files('Parcel', 'parcel', 'bun run parcel build', 'dist', true),
  files('webpack', 'html-webpack-plugin', 'bun run webpack --mode production', 'dist', true),
]
