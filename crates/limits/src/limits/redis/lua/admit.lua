-- Requests that waited at the same time, each with the thirteen checks, in order, and counted: all
-- of it or none; and its place at the provider that is tried first, if that is asked for. KEYS: the
-- hashes of users and providers from 2 on. ARGV: 1, 2 see head.lua, then a request each (REQUEST),
-- ordered by user, key and session, so that each holder is read and written once: the places of the
-- user's and the provider's hash in KEYS (0: none), 1 if reservation is strict, user, key,
-- reserved (two numbers), requests per minute, the limits of key and user as a number each,
-- provider (0: none), its limits as a number, the request, the key's field, member ("key:session"),
-- what it asks for; then the limits of key, user and provider (limits.lua). Gives {'ok', an answer
-- each} or {'gone'}. An answer is packed: check of the money limit with the least room (0: none), 1 if the
-- place was taken, provider of the live session (0: none), what counts against that limit, requests
-- of the minute before this one, the present; or it is a list: {check that refuses, current, minute
-- or time of reset, what others reserve where reservations refuse, the present}. The present decides:
-- the checks go by its windows, and the request counts in them. Most requests need only the
-- heads of the records (see record.lua): where the last full check of this minute left more room
-- than was used since, and the session is live, nothing can refuse. All others go the full way
-- (full.lua), which leaves the room for the next ones.
--include head
if call('HEXISTS', KEYS[1], '') == 0 then return { 'gone' } end
local REQUEST, WINDOW, SLOT = '<BBBdddddddddc16Bc0Hc0Hc0', '<ddddddddc0dI4', '<dI4'
local NOTE, ANSWER, AGED = '<dddddddc0', '<BBdddd', NOW - 60000
local answers, notes, noted = { 'ok' }, {}, 0

local reads_window, KEYS, ARGV = true, KEYS, ARGV
--include heads
-- See rpm.lua, full.lua: made when they are needed.
local in_list, full

for i = 3, #ARGV do
  local at, p_at, strict, uid, kid, low, high, most, k_mark, u_mark, pid, p_mark, request, name, of, asked = unpacked(REQUEST, ARGV[i])
  local answer
  if high == 0 then
    local wanted = KEYS[at]
    --include load_user
    local fits = has_user and has_key and has_session
    if fits then
      local u_held, k_held, extra, before, place = u_spent + u_reserved, k_spent + k_reserved, strict * low, served, 0
      fits = u_limits == u_mark and k_limits == k_mark and u_next > NOW and u_held < u_room and k_held < k_room
        and u_held + extra <= u_room and k_held + extra <= k_room and u_reserved + low < BASE
      if fits and pid ~= 0 and (served == 0 or served == pid) then
        wanted = KEYS[p_at]
        --include load_place
        place = pid
        fits = has_place and p_next > NOW and p_limits == p_mark and p_spent + p_reserved < p_room and p_reserved + low < BASE
      end
      if fits then
        local n, of_last, last, first, slots, of_first, chunks, front = unpacked(HEAD, window)
        local from, slot = 65, NOW
        local simple = last > AGED and first ~= 0
        while simple and first <= AGED do
          if front > 0 then front = front - 12 else simple = chunks == 0 and from < #window end
          if simple then
            n, slots = n - of_first, slots - 1
            first, of_first = unpacked(SLOT, window, from)
            from = from + 12
          end
        end
        if not simple or #window - from - front >= 179 then
          if not in_list then
            --include in_list
          end
          n, slot = in_list(P .. 'ur:' .. string.format('%.0f', uid), most)
        elseif most ~= 0 and n >= most then slot = nil
        else
          if slots >= 1024 then slot = math.floor(NOW / 100) * 100 + 99 end
          if slot <= last then
            slot = last
            window = pack(TAILED, n + 1, of_last + 1, last, first, slots, of_first, chunks, front, string.sub(window, from))
          else
            window = pack(WINDOW, n + 1, 1, slot, first, slots + 1, of_first, chunks, front, string.sub(window, from), last, of_last)
          end
        end
        if slot then
          if place ~= 0 then
            p_reserved, p_runs, p_requests, is_new_place, served = p_reserved + low, p_runs + 1, p_requests + 1, true, place
          end
          u_reserved, k_reserved, runs, requests, asks = u_reserved + low, k_reserved + low, runs + 1, requests + 1, asked
          is_new, is_new_key, is_new_session, is_new_window = true, true, true, true
          notes[noted + 1], notes[noted + 2] = request, pack(NOTE, slot, place, NOW, uid, kid, low, high, of)
          noted = noted + 2
          local u_left, k_left = u_room - u_held, k_room - k_held
          if u_tight ~= 0 and (k_tight == 0 or u_left < k_left or (u_left == k_left and u_tight < k_tight)) then
            answer = pack(ANSWER, u_tight, place == 0 and 0 or 1, before, u_against + u_held, n, NOW)
          else
            answer = pack(ANSWER, k_tight, place == 0 and 0 or 1, before, k_against + k_held, n, NOW)
          end
        end
      end
    end
  end
  if not answer then
    --include save_user
    --include save_place
    if not full then
      --include full
    end
    answer = full(ARGV[i])
  end
  answers[i - 1] = answer
end
--include save_user
--include save_place
if noted > 0 then call('HSET', KEYS[1], unpack(notes, 1, noted)) end
return answers
