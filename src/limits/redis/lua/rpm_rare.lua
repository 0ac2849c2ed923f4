-- The rare parts of the requests per minute: one that was admitted earlier, one that is taken back,
-- and when fewer will count.

-- All slots in their order: { time, count }.
local function rpm_slots(w)
  local slots = {}
  local function each(packed)
    for at = 1, #packed, 12 do
      local time, count = struct.unpack('<dI4', packed, at)
      slots[#slots + 1] = { time, count }
    end
  end
  if w.first ~= 0 then slots[1] = { w.first, w.of_first } end
  each(w.front)
  if w.chunks > 0 then for _, chunk in ipairs(call('LRANGE', w.list, 0, -1)) do each(chunk) end end
  each(w.back)
  if w.last ~= 0 then slots[#slots + 1] = { w.last, w.of_last } end
  return slots
end

-- Puts slots in place of those that there are.
local function rpm_replace(w, slots)
  if w.chunks > 0 then call('DEL', w.list) end
  w.n, w.slots, w.chunks, w.front, w.back = 0, #slots, 0, '', ''
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

-- As rpm_add, for a request that was admitted at some time of the past minute.
local function rpm_insert(w, at)
  if at >= w.last or w.slots == 0 then return rpm_add(w, at) end
  local slots = rpm_slots(w)
  local place = 1
  while slots[place] and slots[place][1] < at do place = place + 1 end
  if slots[place] and (slots[place][1] == at or #slots >= EXACT_SLOTS) then
    slots[place][2] = slots[place][2] + 1
    at = slots[place][1]
  else
    table.insert(slots, place, { at, 1 })
  end
  rpm_replace(w, slots)
  return at
end

local function rpm_take_back(w, slot)
  if slot == 0 or slot <= NOW - SLOT_TTL then return end
  if slot == w.last then
    if w.of_last > 0 then w.of_last, w.n = w.of_last - 1, w.n - 1 end
    return
  end
  if slot == w.first then
    if w.of_first > 0 then w.of_first, w.n = w.of_first - 1, w.n - 1 end
    return
  end
  local slots = rpm_slots(w)
  for i, found in ipairs(slots) do
    if found[1] == slot then
      found[2] = found[2] - 1
      if found[2] <= 0 then table.remove(slots, i) end
      return rpm_replace(w, slots)
    end
  end
end

-- When fewer than `limit` requests will count.
local function rpm_below(w, limit)
  local total = w.n - w.of_first
  if w.first ~= 0 and total < limit then return int(w.first + SLOT_TTL) end
  total = w.n
  for _, slot in ipairs(rpm_slots(w)) do
    total = total - slot[2]
    if total < limit then return int(slot[1] + SLOT_TTL) end
  end
  return ''
end
