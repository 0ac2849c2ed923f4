-- What a node counted that nobody waits for, in its order, each batch once: a number that was seen
-- changes nothing. ARGV: 10 the batch's number, then thirteen fields for each: kind, request, user,
-- key, session, started, reserved, cost, provider, time, admitted, model, format. Kinds: S settled,
-- W withdrawn from a provider, G given back, E entered a provider, R running (registered again), L
-- a cost that became known late. Gives {'ok'} or {'gone'}. What was spent is told to all nodes.
local number = tonumber(ARGV[10])
if tonumber(call('GET', G .. 'seq:' .. NODE) or '0') >= number then return { 'ok' } end
if not in_force() then return { 'gone' } end
local news = { NODE }
-- Sums that came from the ledger may hold what a node settled shortly before they were read.
local counted_before = tonumber(call('GET', P .. 'seen_from') or '0')
local has_seen = counted_before > 0 and call('EXISTS', P .. 'seen') == 1

local function is_counted(request, ended)
  return ended < counted_before or (has_seen and call('SISMEMBER', P .. 'seen', request) == 1)
end

local function settle(o, request, cost, served, times)
  local held, ended = unnote(NODE, request), times.ended
  if is_counted(request, ended) then cost = '0' end
  local back = '0'
  if held then
    back = negated(held.reserved)
    o.started = held.started
  end
  if o.uid ~= '' then
    local sets, detail = user_sets(o.uid, o.kid), detail_of(member_of(o))
    if not held then
      enter(sets, detail, member_of(o), o.started, o.uid)
      if times.admitted > NOW - 60000 then rpm_add(o.uid, times.admitted) end
    end
    add('u' .. o.uid, o.started, cost, back)
    add('k' .. o.kid, o.started, cost, back)
    leave(sets, detail, member_of(o), cost, ended)
    if served ~= '' then call('HSET', detail, 'provider', served) end
  end
  if held and held.at ~= '' and held.at == served then
    add('p' .. served, o.started, cost, back)
    leave({ P .. 'z:p' .. served }, detail_at(served, member_of(held)), member_of(held), cost, ended)
  else
    if held then leave_provider(held) end
    if served ~= '' then add('p' .. served, o.started, cost, '0') end
  end
  if cost ~= '0' then
    news[#news + 1] = table.concat({ o.uid, o.kid, served, int(o.started), cost }, ' ')
  end
end

-- Counters that were made from the ledger after the cost was written there have it.
local read_at = tonumber(call('GET', P .. 'read_at') or '0')
local function late(o, cost, served, priced)
  if priced < read_at then return end
  if o.uid ~= '' then
    add('u' .. o.uid, o.started, cost, '0')
    add('k' .. o.kid, o.started, cost, '0')
  end
  if served ~= '' then add('p' .. served, o.started, cost, '0') end
  news[#news + 1] = table.concat({ o.uid, o.kid, served, int(o.started), cost }, ' ')
end

for at = 11, #ARGV, 13 do
  local kind, request, provider = ARGV[at], ARGV[at + 1], ARGV[at + 8]
  local o = { uid = ARGV[at + 2], kid = ARGV[at + 3], sid = ARGV[at + 4], started = tonumber(ARGV[at + 5]),
    reserved = ARGV[at + 6], slot = '', at = '' }
  -- A start that a clock in the future stamped is not later than now.
  o.started = math.min(o.started, NOW)
  local admitted, model, format = math.min(tonumber(ARGV[at + 10]), NOW), ARGV[at + 11], ARGV[at + 12]
  if kind == 'S' then settle(o, request, ARGV[at + 7], provider, { ended = tonumber(ARGV[at + 9]), admitted = admitted })
  elseif kind == 'L' then late(o, ARGV[at + 7], provider, tonumber(ARGV[at + 9]))
  elseif kind == 'G' then
    local held = unnote(NODE, request)
    if held then give_back(held) end
  elseif kind == 'R' then
    if not noted(NODE, request) then
      if o.uid ~= '' then
        take(o)
        asks(member_of(o), model, format)
        if admitted > NOW - 60000 then o.slot = rpm_add(o.uid, admitted) end
      end
      if provider ~= '' then enter_provider(o, provider) end
      note(NODE, request, o)
    end
  elseif kind == 'E' then
    local held = noted(NODE, request) or o
    leave_provider(held)
    enter_provider(held, provider)
    note(NODE, request, held)
  elseif kind == 'W' then
    local held = noted(NODE, request)
    if held and held.at == provider then
      leave_provider(held)
      note(NODE, request, held)
    end
  end
end
call('SET', G .. 'seq:' .. NODE, ARGV[10], 'PX', RUNNING_TTL)
if #news > 1 then call('PUBLISH', G .. 'news', table.concat(news, '\n')) end
return { 'ok' }
