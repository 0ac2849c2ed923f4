-- Requests per minute: slots by time, with how many share each. Beyond a thousand, those of a tenth
-- of a second share one, at its end: it may count that much too long. One packed value has the
-- figures, the first slot, the last slot, and some slots after the first and before the last; what
-- is between is a list of chunks of sixteen slots.
local SLOT_TTL, EXACT_SLOTS, CHUNK = 60000, 1024, 192

local function rpm_read(packed, list)
  if not packed then
    return { n = 0, slots = 0, first = 0, of_first = 0, last = 0, of_last = 0, chunks = 0, front = '', back = '', list = list }
  end
  local w, front, at = { list = list }, 0, 0
  w.n, w.of_last, w.last, w.first, w.slots, w.of_first, w.chunks, front, at = struct.unpack('<dddddddd', packed)
  w.front, w.back = string.sub(packed, at, at + front - 1), string.sub(packed, at + front)
  return w
end

-- Puts slots in place of those that there are.
local function rpm_replace(w, slots)
  if w.chunks > 0 then call('DEL', w.list) end
  w.n, w.slots, w.chunks, w.front, w.back, w.open = 0, #slots, 0, '', '', nil
  w.first, w.of_first, w.last, w.of_last = 0, 0, 0, 0
  for i, slot in ipairs(slots) do
    w.n = w.n + slot[2]
    if i == #slots then w.last, w.of_last = slot[1], slot[2]
    elseif i == 1 then w.first, w.of_first = slot[1], slot[2]
    else
      w.back = w.back .. struct.pack('<dI4', slot[1], slot[2])
      if #w.back >= CHUNK then
        call('RPUSH', w.list, w.back)
        w.back, w.chunks = '', w.chunks + 1
      end
    end
  end
  if w.chunks > 0 then call('PEXPIRE', w.list, 2 * SLOT_TTL) end
end
-- Also writes the slots that a script changed as a list (rpm_opened).
local function rpm_written(w)
  if w.open then rpm_replace(w, w.open) end
  return struct.pack('<dddddddd', w.n, w.of_last, w.last, w.first, w.slots, w.of_first, w.chunks, #w.front) .. w.front .. w.back
end
local function rpm_sum(slots)
  local sum = 0
  for at = 9, #slots, 12 do sum = sum + struct.unpack('<I4', slots, at) end
  return sum
end

-- Drops what no longer counts.
local function rpm_expire(w)
  local over = NOW - SLOT_TTL
  if w.last <= over then
    if w.chunks > 0 then call('DEL', w.list) end
    w.n, w.slots, w.first, w.of_first, w.last, w.of_last, w.chunks, w.front, w.back = 0, 0, 0, 0, 0, 0, 0, '', ''
    return
  end
  while w.first ~= 0 and w.first <= over do
    w.n, w.slots = w.n - w.of_first, w.slots - 1
    if w.front == '' and w.chunks > 0 then
      w.front, w.chunks = call('LPOP', w.list) or '', w.chunks - 1
      if w.front == '' then
        w.chunks, w.n, w.slots = 0, rpm_sum(w.back) + w.of_last, #w.back / 12 + 1
      end
    end
    if w.front ~= '' then
      w.first, w.of_first = struct.unpack('<dI4', w.front)
      w.front = string.sub(w.front, 13)
    elseif w.back ~= '' then
      w.first, w.of_first = struct.unpack('<dI4', w.back)
      w.back = string.sub(w.back, 13)
    else
      w.first, w.of_first = 0, 0
    end
  end
end

-- Counts a request that is admitted now. Returns its slot.
local function rpm_add(w, at)
  local slot = at
  if w.slots >= EXACT_SLOTS then slot = math.floor(at / 100) * 100 + 99 end
  w.n = w.n + 1
  if slot <= w.last then
    w.of_last = w.of_last + 1
    return w.last
  end
  if w.last ~= 0 then
    if w.first == 0 then w.first, w.of_first = w.last, w.of_last
    else
      w.back = w.back .. struct.pack('<dI4', w.last, w.of_last)
      if #w.back >= CHUNK then
        call('RPUSH', w.list, w.back)
        call('PEXPIRE', w.list, 2 * SLOT_TTL)
        w.back, w.chunks = '', w.chunks + 1
      end
    end
  end
  w.last, w.of_last, w.slots = slot, 1, w.slots + 1
  return slot
end
