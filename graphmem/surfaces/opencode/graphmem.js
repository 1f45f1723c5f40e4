// graphmem in OpenCode, for its loader of plug-ins that are functions. It calls every export, so there is one.

import { bridge } from "../graphmem/bridge.js"

const WRITER = "graphmem-writer"

export const Graphmem = async ({ client, directory, worktree }) => {
  // A session of its own, whose agent may use no tool: to hand over none does not take them away.
  const write = async (parentID, text) => {
    const { data: child } = await client.session.create({ body: { parentID, title: WRITER } })
    memory.writer(child.id)
    const path = { id: child.id }
    try {
      const { data } = await client.session.prompt({ path, body: { agent: WRITER, parts: [{ type: "text", text }] } })
      return data.parts.map((part) => (part.type === "text" ? part.text : "")).join("")
    } finally {
      await client.session.delete({ path })
    }
  }
  const memory = bridge({ folder: worktree && worktree !== "/" ? worktree : directory, write })

  // A failure of ours is none of OpenCode's.
  const safe = (hook) => async (input, output) => {
    try {
      await hook(input, output)
    } catch {}
  }

  return {
    config: safe(async (config) => {
      if (!memory.writes) return
      const description = "Writes checkpoints for graphmem."
      config.agent = {
        ...config.agent,
        [WRITER]: { description, mode: "subagent", hidden: true, permission: { "*": "deny" }, tools: { "*": false } },
      }
    }),

    "chat.message": safe(async ({ sessionID }, { message, parts }) => {
      const text = await memory.prompt(sessionID, message, parts)
      const last = parts.at(-1)
      if (!text || !last?.id) return
      // Ids are in the order of parts.
      parts.push({ id: `${last.id}m`, sessionID, messageID: message.id, type: "text", synthetic: true, text })
    }),

    "experimental.chat.system.transform": safe(async ({ sessionID }, { system }) => {
      const text = memory.system(sessionID)
      if (text && !system[0]?.startsWith("You are a title generator")) system.push(text)
    }),

    "experimental.session.compacting": safe(async ({ sessionID }, { context }) => {
      const text = await memory.compacting(sessionID)
      if (text) context.push(text)
    }),

    "command.execute.before": safe(async ({ command, sessionID, arguments: words }, { parts }) => {
      if (!command.startsWith("mem-")) return
      const text = await memory.command(sessionID, command, words)
      const own = parts.filter((part) => part.type === "text")
      if (text && own.length) {
        own[0].text = text
        parts.splice(0, parts.length, own[0])
      }
      for (const part of parts) if (part.type === "text") memory.ours(sessionID, part.text)
    }),

    "tool.execute.before": safe(async ({ tool, sessionID, callID }, { args }) => {
      memory.toolBefore(sessionID, callID, tool, args)
    }),

    "tool.execute.after": safe(async ({ sessionID, callID }, output) => {
      const text = await memory.toolAfter(sessionID, callID)
      if (text && typeof output?.output === "string") output.output += `\n\n${text}`
    }),

    event: safe(async ({ event: { type, properties } }) => {
      const { sessionID, info, part, messageID, partID } = properties ?? {}
      if (type === "session.created" || type === "session.updated") {
        if (info.title === WRITER) memory.writer(info.id)
        else memory.session(info.id, info.parentID)
      }
      else if (type === "session.deleted") await memory.deleted(info.id)
      else if (type === "session.idle") memory.idle(sessionID)
      else if (type === "session.compacted") memory.compacted(sessionID)
      else if (type === "message.updated") memory.message(info.sessionID, info)
      else if (type === "message.removed") memory.removed(sessionID, { messages: [messageID] })
      else if (type === "message.part.removed") memory.removed(sessionID, { parts: [partID] })
      else if (type === "message.part.updated") {
        const state = part.state ?? {}
        if (part.type === "text" && part.time?.end) memory.said(part.sessionID, part.messageID, part)
        if (part.type === "tool" && (state.status === "completed" || state.status === "error")) {
          memory.said(part.sessionID, part.messageID, part)
          if (state.status === "error") memory.failed(part.sessionID, part.callID, part.tool, state.input, state.error)
        }
      }
    }),

    dispose: async () => {
      try {
        await memory.dispose()
      } catch {}
    },
  }
}
