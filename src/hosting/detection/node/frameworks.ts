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
export interface Examined {
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

/**
 * Describes a framework whose build consists of files: its package, its output directory, and whether one page serves
 * all paths.
 *
 * @param where files and a pattern whose group is another output directory
 */
function files(
  name: string,
  dependency: string,
  build: string,
  output: string,
  fallback: boolean,
  where?: readonly [files: readonly string[], pattern: RegExp],
): Recognizer {
  return async ({ app, pkg }) => {
    if (!dependsOn(pkg, dependency) || hasOwnServer(pkg)) return null
    const [paths = [], pattern = null] = where ?? []
    const stated = pattern?.exec(await app.textOf(paths))?.[1]
    const start = startFiles(inDirectory('', stated ?? output), fallback)
    return { name, by: dependency, build: `bun run ${build}`, start }
  }
}

/** Describes a framework with a server of its own, which runs unless the package has a script `start`. */
function server(name: string, dependency: string, build: string, start: string): Recognizer {
  return ({ pkg }) => {
    if (!dependsOn(pkg, dependency)) return null
    const command = pkg.scripts.start === undefined ? start : 'bun run start'
    return { name, by: dependency, build: `bun run ${build}`, start: startCommand(command) }
  }
}

const next: Recognizer = async ({ app, pkg }) => {
  if (!dependsOn(pkg, 'next')) return null
  const isUsed =
    ['app', 'pages', 'src/app', 'src/pages'].some((path) => app.hasDirectory(path)) ||
    app.first(config('next')) !== null ||
    Object.values(pkg.scripts).some((one) => /\bnext\b/.test(one))
  if (!isUsed) return null
  const script = resolveScript(pkg, 'start')
  const text = await app.textOf(config('next'))
  const output = option(text, 'output')
  if (output === 'export' && (script === null || !hasOwnServer(pkg) || /\bnext start\b/.test(script))) {
    return {
      name: 'Next.js (static)',
      by: 'next',
      build: 'bun run next build',
      start: startFiles(option(text, 'distDir') ?? 'out', false),
    }
  }
  // The app has its own server, which reads PORT.
  if (script !== null && !/\bnext\b/.test(script)) return null
  return {
    name: 'Next.js',
    by: 'next',
    build: 'bun run next build',
    start: startCommand('bun run next start -p $PORT -H $HOST'),
  }
}

const nuxt: Recognizer = ({ pkg }) => {
  if (!dependsOn(pkg, 'nuxt', 'nuxt3')) return null
  const by = dependsOn(pkg, 'nuxt') ? 'nuxt' : 'nuxt3'
  if (majorOf(pkg, 'nuxt') === 2) {
    const command = 'bun run nuxt start --port $PORT --hostname $HOST'
    return { name: 'Nuxt', by, build: 'bun run nuxt build', start: startCommand(command) }
  }
  if (/\bnuxt generate\b/.test(resolveScript(pkg, 'build') ?? '')) {
    return {
      name: 'Nuxt (static)',
      by,
      build: 'bun run nuxt generate',
      start: startFiles('.output/public', false),
    }
  }
  return {
    name: 'Nuxt',
    by,
    build: 'bun run nuxt build',
    start: startCommand('node .output/server/index.mjs'),
  }
}

const svelteKit: Recognizer = async ({ app, pkg }) => {
  if (!dependsOn(pkg, '@sveltejs/kit')) return null
  const text = await app.textOf(config('svelte'))
  const found = { name: 'SvelteKit', by: '@sveltejs/kit', build: 'bun run vite build' }
  if (hasOwnServer(pkg)) return { ...found, start: startCommand('bun run start') }
  if (text.includes('@sveltejs/adapter-static')) {
    const start = startFiles(option(text, 'pages') ?? 'build', option(text, 'fallback') === 'index.html')
    return { ...found, name: 'SvelteKit (static)', start }
  }
  const out = option(text, 'out') ?? 'build'
  const prefix = option(text, 'envPrefix')
  const where = prefix === null ? '' : `${prefix}PORT=$PORT ${prefix}HOST=$HOST `
  if (text.includes('@sveltejs/adapter-node')) return { ...found, start: startCommand(`${where}node ${out}`) }
  if (text.includes('svelte-adapter-bun'))
    return { ...found, start: startCommand(`${where}bun ${out}/index.js`) }
  // Adapters for hosts elsewhere leave nothing to run here; the preview runs any build.
  return { ...found, start: startCommand(VITE_PREVIEW) }
}

const VITE_PREVIEW = 'bun run vite preview --port $PORT --strictPort --host $HOST'

const astro: Recognizer = async ({ app, pkg }) => {
  if (!dependsOn(pkg, 'astro') || hasOwnServer(pkg)) return null
  const text = await app.textOf(config('astro'))
  const out = option(text, 'outDir') ?? 'dist'
  const [by, build] = ['astro', 'bun run astro build']
  if (text.includes('@astrojs/node') && option(text, 'mode') !== 'middleware') {
    return {
      name: 'Astro',
      by,
      build,
      start: startCommand(`node ./${inDirectory('', out)}/server/entry.mjs`),
    }
  }
  if (option(text, 'output') === 'server') {
    // The build targets another host, so only the development server runs here.
    const command = 'NODE_ENV=development bun run astro dev --port $PORT --host $HOST'
    return { name: 'Astro (development server)', by, build: null, start: startCommand(command) }
  }
  return { name: 'Astro (static)', by, build, start: startFiles(inDirectory('', out), false) }
}

const reactRouter: Recognizer = async ({ app, pkg }) => {
  const [by, serve, tool] = dependsOn(pkg, '@react-router/dev')
    ? ['@react-router/dev', 'react-router-serve', 'react-router build']
    : dependsOn(pkg, '@remix-run/dev')
      ? ['@remix-run/dev', 'remix-serve', 'remix vite:build']
      : []
  if (by === undefined || tool === undefined) return null
  const name = serve === 'remix-serve' ? 'Remix' : 'React Router'
  const text = (await app.textOf(config('react-router'))) + (await app.textOf(config('vite')))
  if (/\bssr\s*:\s*false\b/.test(text)) {
    return {
      name: `${name} (single-page app)`,
      by,
      build: `bun run ${tool}`,
      start: startFiles('build/client', true),
    }
  }
  const start = pkg.scripts.start === undefined ? `${serve} ./build/server/index.js` : 'start'
  return { name, by, build: `bun run ${tool}`, start: startCommand(`bun run ${start}`) }
}

const angular: Recognizer = async ({ app, pkg }) => {
  if (!dependsOn(pkg, '@angular/core') || !(await app.has('angular.json')) || hasOwnServer(pkg)) return null
  const { output, server } = await readAngular(app)
  const [by, build] = ['@angular/core', 'bun run ng build']
  if (server !== null) return { name: 'Angular', by, build, start: startCommand(`node ${server}`) }
  return { name: 'Angular (single-page app)', by, build, start: startFiles(output, true) }
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
    by: 'vite',
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
  return {
    name: 'VitePress',
    by: 'vitepress',
    build,
    start: startFiles(inDirectory(root, '.vitepress/dist'), false),
  }
}

/** NestJS: what it was compiled to, rather than the compiler of its script `start`. */
const nest: Recognizer = ({ pkg }) => {
  const script = resolveScript(pkg, 'start')
  if (!dependsOn(pkg, '@nestjs/core') || !(script === null || /^nest start\b/.test(script))) return null
  const command = pkg.scripts['start:prod'] === undefined ? 'node dist/main' : 'bun run start:prod'
  return { name: 'NestJS', by: '@nestjs/core', build: 'bun run nest build', start: startCommand(command) }
}

/** AdonisJS: its build has a directory with everything that runs. */
const adonis: Recognizer = ({ app, pkg }) => {
  if (!dependsOn(pkg, '@adonisjs/core')) return null
  const file = app.has('bin/server.ts') ? 'bin/server.js' : 'server.js'
  const start = startCommand(`cd build && node ${file}`)
  return { name: 'AdonisJS', by: '@adonisjs/core', build: 'node ace build', start }
}

/** TanStack Start: Nitro's server if its build has that, else the preview. */
const tanStack: Recognizer = async ({ app, pkg }) => {
  const by = ['@tanstack/react-start', '@tanstack/solid-start', '@tanstack/start'].find((name) =>
    dependsOn(pkg, name),
  )
  if (by === undefined) return null
  const nitro = dependsOn(pkg, 'vinxi') || /\bnitro\b/i.test(await app.textOf(config('vite')))
  const command =
    pkg.scripts.start !== undefined ? 'bun run start' : nitro ? `node ${NITRO_OUTPUT}` : VITE_PREVIEW
  const build = dependsOn(pkg, 'vinxi') ? 'bun run vinxi build' : 'bun run vite build'
  return { name: 'TanStack Start', by, build, start: startCommand(command) }
}

/** Qwik: its server if it has one, else the preview, which needs a build of its own. */
const qwik: Recognizer = ({ pkg }) => {
  const by = ['@builder.io/qwik-city', '@qwik.dev/router'].find((name) => dependsOn(pkg, name))
  if (by === undefined || hasOwnServer(pkg)) return null
  const command =
    pkg.scripts.serve === undefined ? `bun run qwik build preview && ${VITE_PREVIEW}` : 'bun run serve'
  return { name: 'Qwik', by, build: 'bun run qwik build', start: startCommand(command) }
}

/** Expo with pages for browsers. */
const expo: Recognizer = ({ pkg }) =>
  dependsOn(pkg, 'expo') && dependsOn(pkg, 'react-native-web')
    ? {
        name: 'Expo (web)',
        by: 'expo',
        build: 'bun run expo export --platform web',
        start: startFiles('dist', true),
      }
    : null

/** Storybook, of a package that is nothing else. */
const storybook: Recognizer = ({ pkg }) =>
  !dependsOn(pkg, 'storybook', '@storybook/cli') || hasOwnServer(pkg)
    ? null
    : {
        ...{ name: 'Storybook', by: 'storybook', script: 'build-storybook' },
        ...{ build: 'bun run storybook build', start: startFiles('storybook-static', false) },
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
  server('SolidStart', '@solidjs/start', 'vinxi build', `node ${NITRO_OUTPUT}`),
  qwik,
  nest,
  adonis,
  server('Strapi', '@strapi/strapi', 'strapi build', 'bun run strapi start'),
  server('KeystoneJS', '@keystone-6/core', 'keystone build', 'bun run keystone start'),
  server('Nitro', 'nitropack', 'nitropack build', `node ${NITRO_OUTPUT}`),
  server('Nitro', 'nitro', 'nitro build', `node ${NITRO_OUTPUT}`),
  expo,
  files('Gatsby', 'gatsby', 'gatsby build', 'public', false),
  files('Create React App', 'react-scripts', 'react-scripts build', 'build', true),
  angular,
  files('Vue CLI (single-page app)', '@vue/cli-service', 'vue-cli-service build', 'dist', true),
  files('Docusaurus', '@docusaurus/core', 'docusaurus build', 'build', false),
  files('Eleventy', '@11ty/eleventy', 'eleventy', '_site', false, [
    ['.eleventy.js', ...config('eleventy')],
    /\boutput\s*:\s*['"]([^'"]+)/,
  ]),
  vitePress,
  files('VuePress', 'vuepress', 'vuepress build docs', 'docs/.vuepress/dist', false),
  files('Rspress', 'rspress', 'rspress build', 'doc_build', false),
  files('Hexo', 'hexo', 'hexo generate', 'public', false),
  files('Gridsome', 'gridsome', 'gridsome build', 'dist', false),
  files('Slidev', '@slidev/cli', 'slidev build', 'dist', true),
  files('Observable Framework', '@observablehq/framework', 'observable build', 'dist', false),
  files('Ember', 'ember-cli', 'ember build --environment=production', 'dist', true),
  files('Quasar', '@quasar/app-vite', 'quasar build', 'dist/spa', true),
  files('Quasar', '@quasar/app-webpack', 'quasar build', 'dist/spa', true),
  files('Umi', 'umi', 'umi build', 'dist', true),
  files('Preact CLI', 'preact-cli', 'preact build', 'build', true),
  vite,
  files('Rsbuild', '@rsbuild/core', 'rsbuild build', 'dist', true),
  files('Parcel', 'parcel', 'parcel build', 'dist', true),
  files('webpack', 'html-webpack-plugin', 'webpack --mode production', 'dist', true, [
    [...config('webpack'), 'webpack.prod.js', 'config/webpack.prod.js'],
    OUTPUT_PATH,
  ]),
  files('Rspack', '@rspack/cli', 'rspack build', 'dist', true, [config('rspack'), OUTPUT_PATH]),
  storybook,
]
