import { fieldsOf } from '../../../runtime/is-object.ts'
import type { StartPlan } from '../../app-runtime/plan.ts'
import { startCommand, startFiles } from '../candidate.ts'
import type { SourceDirectory } from '../source.ts'
import { entryOfScript } from './entry.ts'
import { dependsOn, majorOf, type PackageJson, resolveScript } from './package-json.ts'

/** How an app of a framework is built and started. */
export interface Framework {
  /** For people. */
  readonly name: string
  /** The command that builds it if the package has no script for that; null for none. */
  readonly build: string | null
  /** The script that builds it: `build` unless it is said. */
  readonly script?: string
  readonly start: StartPlan
  /** The dependency by which it is recognized. */
  readonly by: string
}

/** Dependencies that make pages about a package, beside what it is. */
export const DOCUMENTATION = new Set(['vitepress', 'vuepress', 'rspress', '@docusaurus/core', 'storybook'])

/** A web package under examination. */
interface Examined {
  readonly app: SourceDirectory
  readonly pkg: PackageJson
}

type Recognizer = (candidate: Examined) => Promise<Framework | null> | Framework | null

/** Development servers for static files, which berth serves itself. */
const FILE_SERVERS =
  /^(?:[A-Z_]+=\S+\s+|(?:cross-env|npx|bunx|pnpm|yarn|exec|dlx|-y|--yes)\s+)*(?:@[\w-]+\/)?(?:vite|astro|react-scripts|react-app-rewired|craco|ng|vue-cli-service|gatsby|docusaurus|eleventy|vitepress|vuepress|rspress|hexo|gridsome|slidev|observable|ember|quasar|umi|preact|rsbuild|rspack|parcel|webpack|webpack-dev-server|sirv-cli|serve|http-server|live-server|sirv)\b(?![^&|;]*(?:&|\|\||;))/

/** Reports whether the package's start script runs its own server rather than a framework's tool. */
function hasOwnServer(pkg: PackageJson): boolean {
  const script = resolveScript(pkg, 'start')
  return script !== null && !FILE_SERVERS.test(script.trim())
}

/** Detects an app's framework. Returns null if there is none, or if its start script is more specific. */
export async function recognizeFramework(candidate: Examined): Promise<Framework | null> {
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

/** A framework whose build has a server: its name, its package, and what builds and starts it. */
const served = (name: string, by: string, build: string | null, start: string): Framework => ({
  ...{ name, by, start: startCommand(start) },
  build: build === null ? null : runnable(build),
})

/** A framework whose build consists of files: its output directory, and whether one page serves all paths. */
const paged = (name: string, by: string, build: string, output: string, fallback = false): Framework => ({
  ...{ name, by, build: runnable(build), start: startFiles(inDirectory('', output), fallback) },
})

/** Returns the command that runs a program of a package, unless it is one that runs a file. */
const runnable = (command: string): string => (command.startsWith('node ') ? command : `bun run ${command}`)

/**
 * Recognizes a framework whose build consists of files by its package.
 *
 * @param where files and a pattern whose group is another output directory
 */
function files(
  framework: Framework,
  where?: readonly [files: readonly string[], pattern: RegExp],
): Recognizer {
  return async ({ app, pkg }) => {
    if (!dependsOn(pkg, framework.by) || hasOwnServer(pkg)) return null
    const [paths = [], pattern = null] = where ?? []
    const stated = pattern?.exec(await app.textOf(...paths))?.[1]
    const { start } = framework
    if (stated === undefined || start.kind !== 'files') return framework
    return { ...framework, start: { ...start, folder: inDirectory('', stated) } }
  }
}

/** Recognizes a framework with a server of its own, which runs unless the package has a script `start`. */
const server =
  (framework: Framework): Recognizer =>
  ({ pkg }) => {
    if (!dependsOn(pkg, framework.by)) return null
    return pkg.scripts.start === undefined
      ? framework
      : { ...framework, start: startCommand('bun run start') }
  }

const next: Recognizer = async ({ app, pkg }) => {
  if (!dependsOn(pkg, 'next')) return null
  const isUsed =
    ['app', 'pages', 'src/app', 'src/pages'].some((path) => app.hasDirectory(path)) ||
    app.first(config('next')) !== null ||
    Object.values(pkg.scripts).some((one) => /\bnext\b/.test(one))
  if (!isUsed) return null
  const script = resolveScript(pkg, 'start')
  const text = await app.textOf(...config('next'))
  const isExported = option(text, 'output') === 'export'
  if (isExported && (script === null || !hasOwnServer(pkg) || /\bnext start\b/.test(script)))
    return paged('Next.js (static)', 'next', 'next build', option(text, 'distDir') ?? 'out')
  // The app has its own server, which reads PORT.
  if (script !== null && !/\bnext\b/.test(script)) return null
  return served('Next.js', 'next', 'next build', 'bun run next start -p $PORT -H $HOST')
}

const nuxt: Recognizer = ({ pkg }) => {
  const by = ['nuxt', 'nuxt3'].find((name) => dependsOn(pkg, name))
  if (by === undefined) return null
  if (majorOf(pkg, 'nuxt') === 2)
    return served('Nuxt', by, 'nuxt build', 'bun run nuxt start --port $PORT --hostname $HOST')
  if (/\bnuxt generate\b/.test(resolveScript(pkg, 'build') ?? ''))
    return paged('Nuxt (static)', by, 'nuxt generate', '.output/public')
  return served('Nuxt', by, 'nuxt build', `node ${NITRO_OUTPUT}`)
}

const svelteKit: Recognizer = async ({ app, pkg }) => {
  if (!dependsOn(pkg, '@sveltejs/kit')) return null
  const text = await app.textOf(...config('svelte'))
  const by = '@sveltejs/kit'
  const startedBy = (command: string) => served('SvelteKit', by, 'vite build', command)
  if (hasOwnServer(pkg)) return startedBy('bun run start')
  if (text.includes('@sveltejs/adapter-static')) {
    const fallback = option(text, 'fallback') === 'index.html'
    return paged('SvelteKit (static)', by, 'vite build', option(text, 'pages') ?? 'build', fallback)
  }
  const out = option(text, 'out') ?? 'build'
  const prefix = option(text, 'envPrefix')
  const where = prefix === null ? '' : `${prefix}PORT=$PORT ${prefix}HOST=$HOST `
  if (text.includes('@sveltejs/adapter-node')) return startedBy(`${where}node ${out}`)
  if (text.includes('svelte-adapter-bun')) return startedBy(`${where}bun ${out}/index.js`)
  // Adapters for hosts elsewhere leave nothing to run here; the preview runs any build.
  return startedBy(VITE_PREVIEW)
}

const VITE_PREVIEW = 'bun run vite preview --port $PORT --strictPort --host $HOST'

const astro: Recognizer = async ({ app, pkg }) => {
  if (!dependsOn(pkg, 'astro') || hasOwnServer(pkg)) return null
  const text = await app.textOf(...config('astro'))
  const out = inDirectory('', option(text, 'outDir') ?? 'dist')
  if (text.includes('@astrojs/node') && option(text, 'mode') !== 'middleware')
    return served('Astro', 'astro', 'astro build', `node ./${out}/server/entry.mjs`)
  if (option(text, 'output') !== 'server') return paged('Astro (static)', 'astro', 'astro build', out)
  // The build targets another host, so only the development server runs here.
  const command = 'NODE_ENV=development bun run astro dev --port $PORT --host $HOST'
  return served('Astro (development server)', 'astro', null, command)
}

const reactRouter: Recognizer = async ({ app, pkg }) => {
  const [name, by, serve, build] = dependsOn(pkg, '@react-router/dev')
    ? ['React Router', '@react-router/dev', 'react-router-serve', 'react-router build']
    : ['Remix', '@remix-run/dev', 'remix-serve', 'remix vite:build']
  if (!dependsOn(pkg, by)) return null
  const text = (await app.textOf(...config('react-router'))) + (await app.textOf(...config('vite')))
  if (/\bssr\s*:\s*false\b/.test(text))
    return paged(`${name} (single-page app)`, by, build, 'build/client', true)
  const start = pkg.scripts.start === undefined ? `${serve} ./build/server/index.js` : 'start'
  return served(name, by, build, `bun run ${start}`)
}

const angular: Recognizer = async ({ app, pkg }) => {
  if (!dependsOn(pkg, '@angular/core') || !app.has('angular.json') || hasOwnServer(pkg)) return null
  const { output, server } = await readAngular(app)
  return server === null
    ? paged('Angular (single-page app)', '@angular/core', 'ng build', output, true)
    : served('Angular', '@angular/core', 'ng build', `node ${server}`)
}

async function readAngular(app: SourceDirectory): Promise<{ output: string; server: string | null }> {
  const file = fieldsOf(await app.json('angular.json'))
  const projects = fieldsOf(file.projects)
  const name = String(file.defaultProject ?? Object.keys(projects)[0] ?? 'app')
  const { architect, targets } = fieldsOf(projects[name])
  const { builder, options } = fieldsOf(fieldsOf(architect ?? targets).build)
  const { outputPath: path, ssr, server, outputMode } = fieldsOf(options)
  const base = typeof path === 'string' ? path : String(fieldsOf(path).base ?? `dist/${name}`)
  // Before Angular 17 the builder has no separate directory for the browser's files.
  const isApart = !String(builder).endsWith(':browser')
  const isRendered = Boolean(ssr ?? server) && outputMode !== 'static'
  return {
    output: isApart ? `${base}/${fieldsOf(path).browser ?? 'browser'}` : base,
    server: isRendered ? `${inDirectory('', base)}/server/server.mjs` : null,
  }
}

const vite: Recognizer = async ({ app, pkg }) => {
  if (!dependsOn(pkg, 'vite') || hasOwnServer(pkg)) return null
  // Its own server, which uses Vite.
  if (pkg.scripts.start === undefined && (await entryOfScript(app, pkg, 'dev')) !== null) return null
  const text = await app.textOf(...config('vite'))
  const root = option(text, 'root') ?? ''
  if (!app.has(inDirectory(root, 'index.html'))) return null
  const fallback = option(text, 'appType') !== 'mpa'
  const output = inDirectory(root, option(text, 'outDir') ?? 'dist')
  return paged(fallback ? 'Vite (single-page app)' : 'Vite', 'vite', 'vite build', output, fallback)
}

const vitePress: Recognizer = ({ pkg }) => {
  if (!dependsOn(pkg, 'vitepress') || hasOwnServer(pkg)) return null
  const script = Object.values(pkg.scripts).find((one) => /\bvitepress build\b/.test(one)) ?? ''
  const root = /\bvitepress build\s+([\w./-]+)/.exec(script)?.[1] ?? ''
  const output = inDirectory(root, '.vitepress/dist')
  return paged('VitePress', 'vitepress', `vitepress build ${root}`.trim(), output)
}

/** NestJS: what it was compiled to, rather than the compiler of its script `start`. */
const nest: Recognizer = ({ pkg }) => {
  const script = resolveScript(pkg, 'start')
  if (!dependsOn(pkg, '@nestjs/core') || !(script === null || /^nest start\b/.test(script))) return null
  const command = pkg.scripts['start:prod'] === undefined ? 'node dist/main' : 'bun run start:prod'
  return served('NestJS', '@nestjs/core', 'nest build', command)
}

/** AdonisJS: its build has a directory with everything that runs. */
const adonis: Recognizer = ({ app, pkg }) => {
  if (!dependsOn(pkg, '@adonisjs/core')) return null
  const file = app.has('bin/server.ts') ? 'bin/server.js' : 'server.js'
  return served('AdonisJS', '@adonisjs/core', 'node ace build', `cd build && node ${file}`)
}

/** TanStack Start: Nitro's server if its build has that, else the preview. */
const tanStack: Recognizer = async ({ app, pkg }) => {
  const packages = ['@tanstack/react-start', '@tanstack/solid-start', '@tanstack/start']
  const by = packages.find((name) => dependsOn(pkg, name))
  if (by === undefined) return null
  const isVinxi = dependsOn(pkg, 'vinxi')
  const isNitro = isVinxi || /\bnitro\b/i.test(await app.textOf(...config('vite')))
  const command = isNitro ? `node ${NITRO_OUTPUT}` : VITE_PREVIEW
  const build = isVinxi ? 'vinxi build' : 'vite build'
  return served('TanStack Start', by, build, pkg.scripts.start === undefined ? command : 'bun run start')
}

/** Qwik: its server if it has one, else the preview, which needs a build of its own. */
const qwik: Recognizer = ({ pkg }) => {
  const by = ['@builder.io/qwik-city', '@qwik.dev/router'].find((name) => dependsOn(pkg, name))
  if (by === undefined || hasOwnServer(pkg)) return null
  const preview = `bun run qwik build preview && ${VITE_PREVIEW}`
  return served('Qwik', by, 'qwik build', pkg.scripts.serve === undefined ? preview : 'bun run serve')
}

/** Expo with pages for browsers. */
const expo: Recognizer = ({ pkg }) =>
  dependsOn(pkg, 'expo') && dependsOn(pkg, 'react-native-web')
    ? paged('Expo (web)', 'expo', 'expo export --platform web', 'dist', true)
    : null

/** Storybook, of a package that is nothing else. */
const storybook: Recognizer = ({ pkg }) =>
  !dependsOn(pkg, 'storybook', '@storybook/cli') || hasOwnServer(pkg)
    ? null
    : {
        ...paged('Storybook', 'storybook', 'storybook build', 'storybook-static'),
        script: 'build-storybook',
      }

/** Matches the output directory in the configuration of webpack and Rspack. */
const OUTPUT_PATH = /\bpath\s*:\s*[\w.]*\(\s*__dirname\s*,\s*['"]([^'"]+)/

const NITRO_OUTPUT = '.output/server/index.mjs'

const RECOGNIZERS: readonly Recognizer[] = [
  next,
  nuxt,
  svelteKit,
  astro,
  reactRouter,
  tanStack,
  server(served('SolidStart', '@solidjs/start', 'vinxi build', `node ${NITRO_OUTPUT}`)),
  qwik,
  nest,
  adonis,
  server(served('Strapi', '@strapi/strapi', 'strapi build', 'bun run strapi start')),
  server(served('KeystoneJS', '@keystone-6/core', 'keystone build', 'bun run keystone start')),
  server(served('Nitro', 'nitropack', 'nitropack build', `node ${NITRO_OUTPUT}`)),
  server(served('Nitro', 'nitro', 'nitro build', `node ${NITRO_OUTPUT}`)),
  expo,
  files(paged('Gatsby', 'gatsby', 'gatsby build', 'public')),
  files(paged('Create React App', 'react-scripts', 'react-scripts build', 'build', true)),
  angular,
  files(paged('Vue CLI (single-page app)', '@vue/cli-service', 'vue-cli-service build', 'dist', true)),
  files(paged('Docusaurus', '@docusaurus/core', 'docusaurus build', 'build')),
  files(paged('Eleventy', '@11ty/eleventy', 'eleventy', '_site'), [
    ['.eleventy.js', ...config('eleventy')],
    /\boutput\s*:\s*['"]([^'"]+)/,
  ]),
  vitePress,
  files(paged('VuePress', 'vuepress', 'vuepress build docs', 'docs/.vuepress/dist')),
  files(paged('Rspress', 'rspress', 'rspress build', 'doc_build')),
  files(paged('Hexo', 'hexo', 'hexo generate', 'public')),
  files(paged('Gridsome', 'gridsome', 'gridsome build', 'dist')),
  files(paged('Slidev', '@slidev/cli', 'slidev build', 'dist', true)),
  files(paged('Observable Framework', '@observablehq/framework', 'observable build', 'dist')),
  files(paged('Ember', 'ember-cli', 'ember build --environment=production', 'dist', true)),
  files(paged('Quasar', '@quasar/app-vite', 'quasar build', 'dist/spa', true)),
  files(paged('Quasar', '@quasar/app-webpack', 'quasar build', 'dist/spa', true)),
  files(paged('Umi', 'umi', 'umi build', 'dist', true)),
  files(paged('Preact CLI', 'preact-cli', 'preact build', 'build', true)),
  vite,
  files(paged('Rsbuild', '@rsbuild/core', 'rsbuild build', 'dist', true)),
  files(paged('Parcel', 'parcel', 'parcel build', 'dist', true)),
  files(paged('webpack', 'html-webpack-plugin', 'webpack --mode production', 'dist', true), [
    [...config('webpack'), 'webpack.prod.js', 'config/webpack.prod.js'],
    OUTPUT_PATH,
  ]),
  files(paged('Rspack', '@rspack/cli', 'rspack build', 'dist', true), [config('rspack'), OUTPUT_PATH]),
  storybook,
]
