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

-- The slots as a list, which rpm_written writes back: once a script, however many changes it makes.
local function rpm_opened(w)
  w.open = w.open or rpm_slots(w)
  return w.open
end

-- As rpm_add, for a request that was admitted at some time of the past minute.
local function rpm_insert(w, at)
  if not w.open and (at >= w.last or w.slots == 0) then return rpm_add(w, at) end
  local slots = rpm_opened(w)
  if #slots >= EXACT_SLOTS then at = math.floor(at / 100) * 100 + 99 end
  -- From the end: most are recent.
  local place = #slots + 1
  while place > 1 and slots[place - 1][1] >= at do place = place - 1 end
  if slots[place] and slots[place][1] == at then
    slots[place][2] = slots[place][2] + 1
  else
    table.insert(slots, place, { at, 1 })
  end
  return at
end

local function rpm_take_back(w, slot)
  if slot == 0 or slot <= NOW - SLOT_TTL then return end
  if not w.open and slot == w.last then
    if w.of_last > 0 then w.of_last, w.n = w.of_last - 1, w.n - 1 end
    return
  end
  if not w.open and slot == w.first then
    if w.of_first > 0 then w.of_first, w.n = w.of_first - 1, w.n - 1 end
    return
  end
  local slots = rpm_opened(w)
  for i = #slots, 1, -1 do
    if slots[i][1] == slot then
      slots[i][2] = slots[i][2] - 1
      if slots[i][2] <= 0 then table.remove(slots, i) end
      return
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
