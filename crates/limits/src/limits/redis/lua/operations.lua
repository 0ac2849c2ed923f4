-- Operations of a batch that need the whole records, or come in an order that matters.

-- All operations; then every field that they need, in one call for each hash.
local ops, ids, wanted = {}, {}, {}
local function want(sc, name)
  local fields = wanted[sc] or {}
  wanted[sc] = fields
  if not fields[name] then
    fields[name] = true
    fields[#fields + 1] = name
  end
end
for i, op in ipairs(left) do
  local kind, _, _, request, uid, kid, started, low, high, cost, costs, pid, time, number, _, member, after = struct.unpack(OP, op)
  -- A start that a clock in the future stamped is not later than now.
  if started > NOW then started = NOW end
  ops[i] = { slot = 0, at = 0, kind = kind, request = request, uid = uid, kid = kid, started = started, low = low,
    high = high, cost = cost, costs = costs, provider = pid, time = time, number = number, member = member,
    asks = (kind == 'R' or kind == 'E') and string.sub(op, after) }
  ids[i] = request
  if uid ~= 0 then
    local sc = user(uid)
    want(sc, 'u')
    if kid ~= 0 then want(sc, key_field(kid)) end
    if kind ~= 'L' then want(sc, member) end
  end
  if pid > 0 then
    local sc = provider(pid)
    want(sc, 'p')
    if kind ~= 'L' then want(sc, member) end
  end
end
for sc, fields in pairs(wanted) do fetch(sc, fields) end
-- What is noted of each request: an object, or false; as text until it is needed.
local notes, touched = {}, {}
for i, note in ipairs(#ids > 0 and call('HMGET', KEYS[1], unpack(ids)) or {}) do notes[ids[i]] = note end

local function tell(o)
  if o.cost == 0 and o.costs == 0 then return end
  if o.kind == 'L' then news[#news + 1] = struct.pack('<dddddd', 0, 0, 0, o.number, 0, 0)
  else news[#news + 1] = struct.pack('<ddddc16', 0, 0, 0, o.time, o.request) end
  news[#news + 1] = struct.pack('<dddddd', o.uid, o.kid, o.provider, o.started, o.cost, o.costs)
end

local has_seen
local function is_counted(o)
  if o.time > read_by then return false end
  if o.time < counted_before then return true end
  if has_seen == nil then has_seen = call('EXISTS', P .. 'seen') == 1 end
  return has_seen and call('SISMEMBER', P .. 'seen', o.request) == 1
end

local function noted(o)
  local note = notes[o.request]
  if type(note) == 'string' then
    note = held_of(note)
    notes[o.request] = note
  end
  return note
end

local function settle(o)
  local was = noted(o)
  notes[o.request], touched[o.request] = false, true
  if counted_before > 0 and is_counted(o) then o.cost, o.costs = 0, 0 end
  local low, high = 0, 0
  if was then low, high, o.started = was.low, was.high, was.started end
  if o.uid ~= 0 then
    if not was then add_request(o) end
    count_pair(o, o.cost, o.costs, -low, -high)
    leave(user(o.uid), o.member, o.cost, o.costs, o.time)
    if o.provider ~= 0 then served_by(o, o.provider) end
  end
  if was and was.at ~= 0 and was.at == o.provider then
    local sc = provider(o.provider)
    count(sc, 'p', o.started, o.cost, o.costs, -low, -high)
    leave(sc, o.member, o.cost, o.costs, o.time)
  else
    if was then leave_provider(was) end
    if o.provider > 0 then count(provider(o.provider), 'p', o.started, o.cost, o.costs, 0, 0) end
  end
  tell(o)
end

local function late(o)
  -- Counters that were made from the ledger have it, however long it took to come here.
  if o.number <= late_known then return end
  if o.uid ~= 0 then count_pair(o, o.cost, o.costs, 0, 0) end
  if o.provider > 0 then count(provider(o.provider), 'p', o.started, o.cost, o.costs, 0, 0) end
  tell(o)
end

-- A request in flight that these counters may not have.
local function register(o)
  if notes[o.request] then return end
  if o.uid ~= 0 then
    add_request(o)
    count_pair(o, 0, 0, o.low, o.high)
  end
  if o.provider ~= 0 then enter_provider(o, o.provider) end
  notes[o.request], touched[o.request] = o, true
end

for _, o in ipairs(ops) do
  local kind = o.kind
  if kind == 'S' then settle(o)
  elseif kind == 'L' then late(o)
  elseif kind == 'R' then register(o)
  elseif kind == 'E' then
    local was = noted(o)
    if was then
      leave_provider(was)
      enter_provider(was, o.provider)
      touched[o.request] = true
    else
      -- It was admitted, or given back, while Redis was away.
      register(o)
    end
  elseif kind == 'G' or kind == 'W' then
    local was = noted(o)
    if was and kind == 'G' then
      give_back(was)
      notes[o.request], touched[o.request] = false, true
    elseif was and was.at == o.provider then
      leave_provider(was)
      touched[o.request] = true
      -- Without a user, nothing else is counted for it here.
      if was.uid == 0 then notes[o.request] = false end
    end
  end
end
keep_all()
local set = {}
for request in pairs(touched) do
  local note = notes[request]
  if note then set[#set + 1], set[#set + 2] = request, note_of(note) else gone[#gone + 1] = request end
end
if #set > 0 then call('HSET', KEYS[1], unpack(set)) end
