import { defineConfig } from '@playwright/test'

export default defineConfig({ testDir: 'test', fullyParallel: true, workers: 4, reporter: 'list' })
