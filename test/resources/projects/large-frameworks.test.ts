import { usualAppsComeUp } from './usual-apps.ts'

// Astro's lock file is npm's, Next.js's is Bun's, which takes a tenth of npm's processor time to install.
usualAppsComeUp({
  astro: { asks: { '/': '<h1>Astro</h1>', '/about/': '<h1>About</h1>' } },
  next: { asks: { '/': /Next\.js at/, '/api/hello?name=ann': '{"hello":"ann"}' } },
})
