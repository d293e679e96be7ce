-- Decides the checks of a turn in the store, one call after the other, by the store's clock. What it computes is
-- ratelimit/counters/algorithms.py, number for number; the names are the same. Every number is whole and below 2^53.
--
-- (It writes numbers with %d, which is 64 bits wide on servers of 64 bits.)
--
-- KEYS: the counters, each once. ARGV[1], doubles in little-endian order:
--   how many rules; for each: kind, what is charged (1: denied calls, 2: it denies; added), limit, and four more:
--     1 fixed: seconds    2 sliding: slot_us    3 bucket: capacity, scale, tick_us
--     4 calendar: where four windows begin, of which the script takes the one that its clock is in
--   then for each call: how many checks; for each: the number of its key, the number of its rule, hits.
-- Answers four values a check: 1 if over else 0 (or a text: why it failed), before, after, microseconds to the reset.
--
-- A value is text: 'w first count', 's newest slot slot ...', 'b scale used since_us'.

local MOST, US, SLOTS, FIXED, SLIDING, BUCKET = 9007199254740991, 1000000, 16, 1, 2, 3
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local unpack_doubles, match, format = struct.unpack, string.match, string.format

local time = redis.pcall('TIME')
if time.err then return time end
local now_s = tonumber(time[1])
local now_us = now_s * US + tonumber(time[2])

local data, at = ARGV[1], 1
local rules, rule_count = {}, nil
rule_count, at = unpack_doubles('<d', data, at)
for r = 1, rule_count do
  local kind, flags, limit, a, b, c, d
  kind, flags, limit, a, b, c, d, at = unpack_doubles('<ddddddd', data, at)
  local rule = {kind = kind, charge = flags % 2 == 1, denies = flags >= 2, limit = limit}
  if kind == 1 then
    rule.first = now_s - now_s % a
    rule.last = rule.first + a
  elseif kind == 4 then
    rule.kind = FIXED
    if now_s < b then rule.first, rule.last = a, b
    elseif now_s < c then rule.first, rule.last = b, c
    else rule.first, rule.last = c, d end
  elseif kind == 2 then
    rule.slot_us = a
  else
    rule.capacity, rule.scale, rule.tick_us = a, b, c
  end
  rules[r] = rule
end

-- States by the number of the key; false: no counter. They are never changed in place.
local states, stored, failed, resets = {}, {}, {}, {}

local function parsed(text)
  local first, count = match(text, '^w (%-?%d+) (%d+)$')
  if first then return {FIXED, tonumber(first), tonumber(count)} end
  local scale, used, since = match(text, '^b (%d+) (%d+) (%d+)$')
  if scale then return {BUCKET, tonumber(scale), tonumber(used), tonumber(since)} end
  if match(text, '^s %d[%d ]*$') then
    local state, n = {SLIDING}, 1
    for number in string.gmatch(text, '%d+') do
      n = n + 1
      state[n] = tonumber(number)
    end
    return state
  end
end

local function load(k)
  local value = redis.pcall('GET', KEYS[k])
  local state = false
  if type(value) == 'string' then
    state = parsed(value)
    if not state then
      failed[k] = 'WRONGTYPE the key holds something else than a counter'
      return nil
    end
  elseif value then
    failed[k] = value.err
    return nil
  end
  states[k], stored[k] = state, state
  return state
end

-- Each takes a state, a rule and hits, and gives the state (the same where nothing changed), over, before, after,
-- microseconds to the reset.

local function fixed(state, rule, hits)
  local first, last, count = rule.first, rule.last, 0
  if state and state[2] >= first and state[2] - first <= last - first then
    last = last + state[2] - first
    first, count = state[2], state[3]
  end
  local over = hits >= 0 and count + hits > rule.limit
  local after = count
  if not over or rule.charge then after = max(0, min(count + hits, MOST)) end
  if after ~= count then state = {FIXED, first, after} end
  return state, over, count, after, last * US - now_us
end

local function sliding(state, rule, hits)
  local slot_us = rule.slot_us
  local newest, slots, n, before = floor(now_us / slot_us), {}, 0, 0
  if state then
    if newest < state[2] and state[2] <= newest + SLOTS then newest = state[2] end
    local age = newest - state[2]
    if age >= 0 and age <= SLOTS then
      n = min(age + #state - 2, SLOTS + 1)
      for i = 1, n do
        local count = i > age and state[i - age + 2] or 0
        slots[i] = count
        before = before + count
      end
    end
  end
  before = min(before, MOST)
  local over = hits >= 0 and before + hits > rule.limit
  local after = before
  if hits ~= 0 and not over then
    if hits > 0 then
      slots[1] = (slots[1] or 0) + hits
      n = max(n, 1)
    else
      local left = -hits
      for i = 1, n do
        local back = min(slots[i], left)
        slots[i], left = slots[i] - back, left - back
      end
    end
    after = 0
    for i = 1, n do after = after + slots[i] end
    if after ~= before then
      while n > 0 and slots[n] == 0 do n = n - 1 end
      state = {SLIDING, newest}
      for i = 1, n do state[i + 2] = slots[i] end
    end
  end
  local reset = 0
  for i = 1, n do
    if slots[i] > 0 then
      reset = (newest - (i - 1) + SLOTS + 1) * slot_us - now_us
      break
    end
  end
  return state, over, before, after, reset
end

local function bucket(state, rule, hits)
  local limit, capacity, scale, tick_us = rule.limit, rule.capacity, rule.scale, rule.tick_us
  local whole, tick, used = capacity * scale, floor(now_us / tick_us), 0
  if state then
    used = state[3]
    if state[2] ~= scale then used = ceil(used / state[2] * scale) end
    local since = ceil(state[4] / tick_us)
    if since > tick and (since - tick) * limit <= whole then tick = since end
    used = max(0, min(used, whole) - max(0, tick - since) * limit)
  end
  local before = ceil(used / scale)
  local over = hits > capacity or (hits >= 0 and used + hits * scale > whole)
  if hits ~= 0 and not over then
    local left = max(0, used + max(hits, -capacity) * scale)
    if left ~= used then state, used = {BUCKET, scale, left, tick * tick_us}, left end
  end
  local reset = 0
  if used > 0 then reset = min(ceil(used / limit) * tick_us, MOST) end
  return state, over, before, ceil(used / scale), reset
end

local steps = {fixed, sliding, bucket}
local out, row_keys, n, rows = {}, {}, 0, 0

-- Decides one check; gives over. `row` is where its four values go.
local function decided(k, rule, hits, row)
  local state = states[k]
  if state == nil and not failed[k] then state = load(k) end
  local problem = failed[k]
  if not problem and state and state[1] ~= rule.kind then
    problem = 'WRONGTYPE the key holds a counter of another kind'
  end
  if problem then
    out[row + 1], out[row + 2], out[row + 3], out[row + 4] = problem, 0, 0, 0
    return false
  end
  local over, before, after, reset
  state, over, before, after, reset = steps[rule.kind](state, rule, hits)
  states[k], resets[k] = state, reset
  out[row + 1], out[row + 2], out[row + 3], out[row + 4] = over and 1 or 0, before, after, reset
  return over
end

-- Decides a call of several checks, of which `data` has the first at `from`; gives where the next call is.
local function decided_together(count, from)
  local ks, rs, hs, denied, spares, first_row = {}, {}, {}, false, false, n
  for i = 1, count do
    local k, r, hits
    k, r, hits, from = unpack_doubles('<ddd', data, from)
    local rule = rules[r]
    ks[i], rs[i], hs[i] = k, rule, hits
    spares = spares or not rule.charge
  end
  local saved = {}
  if spares then
    for i = 1, count do
      local k = ks[i]
      if states[k] == nil and not failed[k] then load(k) end
      saved[k] = states[k]
    end
  end
  for i = 1, count do
    rows = rows + 1
    row_keys[rows] = ks[i]
    if decided(ks[i], rs[i], hs[i], n) and rs[i].denies then denied = true end
    n = n + 4
  end
  if denied and spares then
    for k, state in pairs(saved) do states[k] = state end
    for i = 1, count do
      local row = first_row + 4 * (i - 1)
      local over, hits = out[row + 1], hs[i]
      if hits > 0 and not rs[i].charge then hits = 0 end
      if type(over) == 'number' then
        decided(ks[i], rs[i], hits, row)
        out[row + 1] = over
      end
    end
  end
  return from
end

local size = #data
while at <= size do
  local count
  count, at = unpack_doubles('<d', data, at)
  if count == 1 then
    -- What a call of one check does not count where it is denied, its step has not counted.
    local k, r, hits
    k, r, hits, at = unpack_doubles('<ddd', data, at)
    rows = rows + 1
    row_keys[rows] = k
    decided(k, rules[r], hits, n)
    n = n + 4
  else
    at = decided_together(count, at)
  end
end

-- Each counter is written once, with the time it has left: a key found without one heals.
local unwritten
for k = 1, #KEYS do
  local state = states[k]
  if state and state ~= stored[k] then
    local text
    if state[1] == SLIDING then
      local numbers = {'s'}
      for i = 2, #state do numbers[i] = format('%d', state[i]) end
      text = table.concat(numbers, ' ')
    elseif state[1] == FIXED then
      text = format('w %d %d', state[2], state[3])
    else
      text = format('b %d %d %d', state[2], state[3], state[4])
    end
    local seconds = max(1, min(ceil(resets[k] / US), 1e10))
    local written = redis.pcall('SET', KEYS[k], text, 'EX', format('%d', seconds))
    if written.err then
      unwritten = unwritten or {}
      unwritten[k] = written.err
    end
  end
end
if unwritten then
  for row = 1, rows do
    local problem = unwritten[row_keys[row]]
    if problem then out[4 * row - 3] = problem end
  end
end
return out
