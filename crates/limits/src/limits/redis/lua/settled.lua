-- The operations that most batches consist of: settlements of requests that began in this minute
-- and whose sessions go on. They come in the order of user, key and session, and change only heads.
-- The others are left in `left`, with all that follows for the same request.
local reads_window = false
--include heads
local ids = {}
for i = 5, #ARGV do ids[i - 4] = string.sub(ARGV[i], 6, 21) end
local found, begin, has_seen = call('HMGET', KEYS[1], unpack(ids)), MINUTE * 60000, nil
local is_left = {}
for i = 5, #ARGV do
  local kind, at, p_at, request, uid, kid, started, low, high, cost, added, pid, time, _, name, of = unpacked(OP, ARGV[i])
  local note, fits = found[i - 4], false
  -- Whether sums that came from the ledger may have it.
  local may_be_counted = counted_before ~= 0 and time <= read_by
  if may_be_counted and time >= counted_before then
    if has_seen == nil then has_seen = call('EXISTS', P .. 'seen') == 1 end
    may_be_counted = has_seen
  end
  if kind == 'S' and not is_left[request] and note and added == 0 and not may_be_counted then
    local place
    _, place, started, _, _, low, high = unpacked('<ddddddd', note)
    fits = high == 0 and started >= begin and started < begin + 60000 and place == pid
    if fits and at ~= 0 then
      local wanted = KEYS[at]
      --include load_user
      fits = has_user and has_key and has_session and runs >= 1 and (runs > 1 or score ~= math.huge) and cost_low + cost < BASE
        and u_spent + cost < BASE and k_spent + cost < BASE
    end
    if fits and place ~= 0 then
      local wanted = KEYS[p_at]
      --include load_place
      fits = has_place and p_runs >= 1 and (p_runs > 1 or p_score ~= math.huge) and p_cost + cost < BASE and p_spent + cost < BASE
    end
    if fits then
      if at ~= 0 then
        u_spent, u_reserved, k_spent, k_reserved = u_spent + cost, u_reserved - low, k_spent + cost, k_reserved - low
        runs, ended, cost_low = runs - 1, math.max(ended, time), cost_low + cost
        is_new, is_new_key, is_new_session = true, true, true
        if pid ~= 0 then served = pid end
      end
      if place ~= 0 then
        p_spent, p_reserved, is_new_place = p_spent + cost, p_reserved - low, true
        p_runs, p_ended, p_cost = p_runs - 1, math.max(p_ended, time), p_cost + cost
      end
      if cost ~= 0 then
        news[#news + 1] = pack('<ddddc16', 0, 0, 0, time, request)
        news[#news + 1] = pack('<dddddd', uid, kid, pid, started, cost, 0)
      end
      gone[#gone + 1] = request
    end
  end
  if not fits then is_left[request], left[#left + 1] = true, ARGV[i] end
end
--include save_user
--include save_place
