import { usualAppsComeUp } from './usual-apps.ts'

usualAppsComeUp({
  'python-http': { asks: { '/x': '"path": "/x"' }, needs: 'python3' },
  express: {
    asks: { '/': '<h1>Express</h1>', '/api/hello?name=ann': '{"hello":"ann"}' },
    by: 'git',
  },
  // It listens on a port of its own choice.
  fastify: { asks: { '/': '{"hello":"world"}' } },
  hono: { asks: { '/': 'Hello Hono!', '/items/7': '{"id":"7"}' }, by: 'git' },
  'vite-react': { asks: { '/': /src="\/assets\/index-[^"]+\.js"/, '/deep/link': '<div id="root">' } },
})
