// Between OpenCode's plug-ins and graphmem's server on this machine, which `graphmem serve --detach` finds or starts.
//
// Nothing here throws into OpenCode, and no turn waits longer than BUDGET at one place. What happens in a session is
// told in its order; while the server is away it waits, and the brief that was good last is shown.

import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import { request } from "node:http"
import { homedir } from "node:os"

const HOST = "opencode"
const BUDGET = 300 // milliseconds
const OF_A_REQUEST = 10_000 // nobody waits for it
const OF_A_START = 40_000
const OF_A_COMMAND = 3_000 // the user waits for it
const AT_THE_END = 1_500
const AGAIN = 15_000 // between two tries to start the server
const MINUTES_IDLE = 30 // until it ends
const MOST_WAITING = 500 // of a session, while the server is away
const MOST_SESSIONS = 100
const RETOLD = new Set(["prompt", "said", "failure", "removed", "deleted", "end"])
// The user's decision is no failure of a tool.
const STOPPED = /^(?:The user rejected|The user dismissed|Tool execution aborted)/
const COMMANDS = { "mem-checkpoint": "checkpoint", "mem-dream": "dream", "mem-distill": "distill" }

// write: lets the model of the host write in a session of its own, where the settings allow that: from the id of the
// session at work and a prompt to a text.
export function bridge({ folder, write, settings = new URL("settings.json", import.meta.url), budget = BUDGET }) {
  const server = new Server(settings)
  const sessions = new Map()
  const writers = new Set() // sessions in which the host writes for us
  const writes = Boolean(write) && server.settings.writes === true
  let isWriting = false
  let hasBegun = false
  let lastGood = ""
  const project = folder && folder !== "/" && folder !== homedir() ? folder : ""
  if (!process.env.GRAPHMEM_WRITER) server.connect()

  const sessionOf = (id) => {
    const found = sessions.get(id) ?? new Session(id)
    sessions.delete(id)
    sessions.set(id, found) // the last one used at the end
    if (sessions.size > MOST_SESSIONS) sessions.delete(sessions.keys().next().value)
    return found
  }

  // What each telling begins with. By its name it is known where it is told again, and then it counts once.
  const heading = (session) => ({ host: HOST, session: session.id, folder: project, telling: randomUUID() })

  // Tell the server something behind all that was told before; resolves to its answer, null where there is none.
  const later = (session, moment, told) => {
    const body = { ...heading(session), child: session.child, writes, ...told }
    return writers.has(session.id) ? Promise.resolve(null) : session.tell(server, moment, body)
  }
  const now = async (session, moment, told) =>
    (await server.ask(moment, { ...heading(session), ...told })) ?? null

  // Wait for an answer as long as a turn may, and not at all for a server that kept one waiting before.
  const heard = async (asking) => {
    const answer = await within(asking, server.isSlow ? 0 : budget)
    if (answer === undefined) server.isSlow = true
    return answer
  }

  const keep = (session, answer, name) => {
    if (!answer || typeof answer[name] !== "string") return
    session.standing = answer[name]
    session.asked = true
    lastGood = answer[name]
  }

  // Write what waits to be written, one after the other.
  const writeAll = async (session) => {
    if (!writes || isWriting) return
    isWriting = true
    try {
      for (;;) {
        const asked = await now(session, "fetch")
        if (!asked?.id) return
        const told = await write(session.id, asked.prompt).then(
          (text) => ({ text }),
          (error) => ({ error: String(error) || "failed" }),
        )
        await now(session, "wrote", { id: asked.id, ...told })
      }
    } finally {
      isWriting = false
    }
  }

  return {
    writes,

    // In this session the host writes for us: it is none to learn from.
    writer(id) {
      writers.add(id)
    },

    // What a user said. Returns what it calls to mind, to stand beside it.
    async prompt(id, message, parts) {
      if (writers.has(id)) return ""
      const session = sessionOf(id)
      session.heed(message)
      const said = parts.filter((part) => part.type === "text" && !part.synthetic && !session.own.has(part.text))
      if (session.child || !said.length) {
        if (said.length) later(session, "said", { said: said.map((part) => session.part(message.id, part)) })
        if (!session.asked) later(session, "start").then((answer) => keep(session, answer, "text"))
        return session.rest()
      }
      const own = said.map((part) => ({ ...part, text: unquoted(part.text) }))
      const text = own.map((part) => part.text).join("\n")
      const answering = later(session, "prompt", { text, said: own.map((part) => session.part(message.id, part)) })
      let isLate = false
      answering.then((answer) => {
        keep(session, answer, "standing")
        if (isLate && isText(answer?.reminder)) session.pending.push(answer.reminder)
      })
      if (!hasBegun) {
        hasBegun = true
        this.idle(id) // what was left when the host ended
      }
      const answer = await heard(answering)
      isLate = answer === undefined
      return session.rest(answer?.found, answer?.reminder)
    },

    // What holds here whatever is said.
    system(id) {
      if (writers.has(id)) return ""
      const session = id ? sessionOf(id) : undefined
      return session?.asked ? session.standing : lastGood
    },

    // A tool is about to run: what is known of it is asked for, and nobody waits.
    toolBefore(id, call, tool, input) {
      const session = sessionOf(id)
      if (server.place) session.calls.set(call, now(session, "tool", { tool, input }))
    },

    // A tool has run. Returns what belongs beside its output.
    async toolAfter(id, call) {
      const session = sessionOf(id)
      const asking = session.calls.get(call)
      session.calls.delete(call)
      const answer = asking && (await heard(asking))
      return session.rest(session.fresh(answer?.text))
    },

    // A part of a message of the agent is complete.
    said(id, messageID, part) {
      const session = sessionOf(id)
      const told = session.part(messageID, part)
      if (told.message.role !== "user") later(session, "said", { said: [told] })
    },

    failed(id, call, tool, input, error) {
      const session = sessionOf(id)
      if (session.failures.has(call) || STOPPED.test(error)) return
      session.failures.add(call)
      later(session, "failure", { tool, input, error }).then((answer) => {
        const warning = session.fresh(answer?.text)
        if (warning) session.pending.push(warning)
      })
    },

    message(id, info) {
      sessionOf(id).heed(info)
    },

    session(id, parent) {
      sessionOf(id).child = Boolean(parent)
    },

    removed(id, told) {
      later(sessionOf(id), "removed", told)
    },

    async deleted(id) {
      await later(sessionOf(id), "deleted")
      sessions.delete(id)
    },

    idle(id) {
      const session = sessionOf(id)
      later(session, "idle").then((answer) => answer && writeAll(session))
    },

    compacted(id) {
      const session = sessionOf(id)
      session.shown.clear()
      later(session, "start").then((answer) => keep(session, answer, "text"))
    },

    // A conversation is about to be made shorter. Returns what has to outlast it.
    async compacting(id) {
      const answer = await heard(later(sessionOf(id), "compact"))
      return isText(answer?.text) ? answer.text : ""
    },

    // Returns what stands in the place of the text of a command of ours, '' for the text of its file.
    async command(id, name, words) {
      const session = sessionOf(id)
      let text = ""
      if (name === "mem-search") {
        const answer = await within(now(session, "search", { text: words }), OF_A_COMMAND)
        if (answer) text = found(words, answer.text)
      } else if (COMMANDS[name]) {
        const answer = await within(later(session, "command", { command: COMMANDS[name] }), OF_A_COMMAND)
        if (isText(answer?.text)) text = `Tell the user this, in a sentence, and do nothing else:\n${answer.text}`
      }
      return text
    },

    // This text stands in a message, and is not the user's.
    ours(id, text) {
      sessionOf(id).own.add(text)
    },

    async dispose() {
      const all = [...sessions.values()]
      for (const session of all) if (session.messages.size) later(session, "end")
      await within(Promise.all(all.map((session) => session.told())), server.place && server.isSlow ? budget : AT_THE_END)
    },
  }
}

function isText(value) {
  return typeof value === "string" && value !== ""
}

function found(words, text) {
  if (!isText(text)) return `The memory was searched for ${JSON.stringify(words)} and knows nothing of it. Tell the user so.`
  return `The memory was searched for ${JSON.stringify(words)}. Tell the user what it found, with its sources:\n${text}`
}

// `opencode run "some words"` hands on the quotes.
function unquoted(text) {
  const inner = /^"((?:[^"\\]|\\.)*)"\s*$/s.exec(text)
  return inner ? inner[1].replaceAll('\\"', '"') : text
}

class Session {
  constructor(id) {
    this.id = id
    this.standing = ""
    this.asked = false
    this.child = false
    this.pending = [] // waits for the next place where it can be shown
    this.shown = new Set() // of tools, until the conversation is made shorter
    this.own = new Set()
    this.messages = new Map()
    this.calls = new Map()
    this.failures = new Set()
    this.queue = []
    this.telling = null
  }

  heed({ id, role, time, summary }) {
    this.messages.set(id, { id, role, time, summary: summary === true })
  }

  part(messageID, part) {
    return { message: this.messages.get(messageID) ?? { id: messageID, role: "assistant" }, part }
  }

  fresh(text) {
    if (!isText(text) || this.shown.has(text)) return ""
    this.shown.add(text)
    return text
  }

  rest(...texts) {
    return [...texts, ...this.pending.splice(0)].filter(isText).join("\n")
  }

  tell(server, moment, body) {
    return new Promise((settle) => {
      this.queue.push({ moment, body, settle })
      if (this.queue.length > MOST_WAITING) this.queue.shift().settle(null)
      this.telling ??= this.run(server).finally(() => (this.telling = null))
    })
  }

  told() {
    return this.telling ?? Promise.resolve()
  }

  async run(server) {
    while (this.queue.length) {
      const next = this.queue.shift() // else it might go for want of room while it is told
      const answer = await server.ask(next.moment, next.body)
      if (answer === undefined) {
        this.queue.unshift(next)
        for (const each of this.queue) each.settle(null)
        this.queue = this.queue.filter((each) => RETOLD.has(each.moment))
        return
      }
      next.settle(answer)
    }
  }
}

class Server {
  constructor(settings) {
    this.settings = read(settings)
    this.place = null
    this.connecting = null
    this.failedAt = -Infinity
    this.isSlow = false
  }

  // Find or start it. Resolves to null where that is not possible.
  connect() {
    if (performance.now() - this.failedAt < AGAIN) return Promise.resolve(null)
    this.connecting ??= this.start()
      .catch(() => null)
      .then((place) => {
        this.place = place
        if (!place) this.failedAt = performance.now()
        this.connecting = null
        return place
      })
    return this.connecting
  }

  async start() {
    const [program, ...words] = this.settings.command
    const options = ["serve", "--detach", "--json", "--port", "0", "--private", "--idle", String(MINUTES_IDLE)]
    return new Promise((resolve, reject) => {
      const child = spawn(program, [...words, ...options], {
        cwd: homedir(),
        stdio: ["ignore", "pipe", "ignore"],
        timeout: OF_A_START,
        windowsHide: true,
      })
      let told = ""
      child.stdout.setEncoding("utf8").on("data", (text) => (told += text))
      child.on("error", reject)
      child.on("close", () => {
        try {
          const { url, token, pid } = JSON.parse(told)
          resolve({ url, token, pid })
        } catch (error) {
          reject(error)
        }
      })
    })
  }

  // Resolves to the answer, null where it was refused, undefined where nobody heard it.
  async ask(moment, body) {
    if (process.env.GRAPHMEM_WRITER) return null
    if (this.place && !lives(this.place.pid)) this.place = null // whatever has its port now is to hear nothing
    for (const place of [this.place, null]) {
      const there = place ?? (await this.connect())
      if (!there) return undefined
      const begun = performance.now()
      const { status, text } = await post(there, moment, body)
      if (performance.now() - begun < BUDGET) this.isSlow = false
      if (status === 200) return parsed(text)
      if (status !== 0 && status !== 401 && status !== 403) return status === 503 ? undefined : null
      if (this.place === there) this.place = null // it ended, or another one has its port
    }
    return undefined
  }
}

// Whether a process of this user is there.
function lives(pid) {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

function read(settings) {
  try {
    return parsed(readFileSync(settings, "utf8")) ?? {}
  } catch {
    return {}
  }
}

function parsed(text) {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

// Not by fetch, which sends what is for this machine to a proxy where one is set.
function post(place, moment, body) {
  const data = Buffer.from(JSON.stringify(body))
  return new Promise((resolve) => {
    const nothing = () => resolve({ status: 0, text: "" })
    const asking = request(
      new URL(`/host/${moment}`, place.url),
      {
        method: "POST",
        timeout: OF_A_REQUEST,
        headers: {
          Authorization: `Bearer ${place.token}`,
          "Content-Type": "application/json",
          "Content-Length": data.length,
        },
      },
      (answer) => {
        let text = ""
        answer.setEncoding("utf8").on("data", (more) => (text += more))
        answer.on("end", () => resolve({ status: answer.statusCode, text }))
        answer.on("error", nothing)
      },
    )
    asking.on("timeout", () => asking.destroy())
    asking.on("error", nothing)
    asking.end(data)
  })
}

// Resolves to undefined where it takes longer.
function within(promise, milliseconds) {
  let timer
  const late = new Promise((resolve) => (timer = setTimeout(resolve, milliseconds)))
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
