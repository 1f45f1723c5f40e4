// Stands for OpenCode in tests: loads a plug-in, does the steps that standard input tells, and prints what came of each.
//
// A step is {hook, input, output}, {event}, {pause: milliseconds} or {dispose}. What a hook made of its output is told.

import { readFileSync } from "node:fs"
import { pathToFileURL } from "node:url"

const [file, folder] = process.argv.slice(2)
const steps = JSON.parse(readFileSync(0, "utf8"))
const module = await import(pathToFileURL(file))
const exported = Object.keys(module)

// Its model says the text twice; what is asked of it is told too.
const asked = []
const client = {
  session: {
    create: async (given) => (asked.push(["create", given]), { data: { id: "child" } }),
    prompt: async (given) => (asked.push(["prompt", given]), answered(given.body.parts[0].text)),
    delete: async (given) => (asked.push(["delete", given]), {}),
  },
}
const given = { client, directory: folder, worktree: folder }
const hooks = module.default ? await second(module.default) : await module[exported[0]](given)
const told = []
for (const { hook, input, output, event, pause, dispose } of steps) {
  if (pause) await new Promise((resolve) => setTimeout(resolve, pause))
  else if (dispose) await hooks.dispose()
  else if (event) await hooks.event({ event })
  else await hooks[hook](input, output)
  told.push(output ?? input ?? null)
}
console.log(JSON.stringify({ exported, told, asked }))
process.exit()

function answered(text) {
  if (text.includes("fail")) throw new Error("no model")
  return { data: { parts: [{ type: "step-start" }, { type: "text", text: text + text }] } }
}

// The hooks of a plug-in for version 2, by the names under which it set them.
async function second(plugin) {
  const found = {}
  const waiting = []
  let wake = () => {}
  const domain = (name) => ({ hook: async (hook, callback) => void (found[`${name}.${hook}`] = callback) })
  const subscribe = async function* ({ signal }) {
    while (!signal.aborted) {
      while (waiting.length) yield waiting.shift()
      await new Promise((resolve) => (wake = resolve))
    }
  }
  const dispose = await plugin.setup({
    location: { directory: folder },
    session: domain("session"),
    tool: domain("tool"),
    event: { subscribe },
  })
  const event = async ({ event }) => {
    waiting.push(event)
    wake()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return { ...found, event, dispose }
}
