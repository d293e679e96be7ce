-- Counts as envoyproxy/ratelimit does, on the counters that it has: INCRBY in any case, and a time to live.
--
-- KEYS: the counters, with the start of their window by the client's clock. ARGV[1], doubles in little-endian order:
-- for each check: the number of its key, hits, seconds to live. Answers two values a check: before (or a text: why it
-- failed), after.

local data, at, out, n = ARGV[1], 1, {}, 0

while at <= #data do
  local k, hits, seconds
  k, hits, seconds, at = struct.unpack('<ddd', data, at)
  local key, before, after = KEYS[k], nil, nil
  if hits < 0 then
    local value = redis.pcall('GET', key)
    if type(value) == 'table' then
      before = value.err
    elseif not tonumber(value or 0) then
      before = 'WRONGTYPE the key holds something else than a counter'
    else
      before = tonumber(value or 0)
      local back = math.min(math.max(before, 0), -hits)
      after = back > 0 and redis.pcall('DECRBY', key, string.format('%.0f', back)) or before
    end
  else
    after = redis.pcall('INCRBY', key, string.format('%.0f', hits))
    if type(after) == 'number' then
      before = after - hits
      -- Once, with the first hit; in the same script, so it never goes missing.
      if before <= 0 then redis.pcall('EXPIRE', key, string.format('%.0f', seconds)) end
    end
  end
  if type(after) == 'table' then before, after = after.err, 0 end
  out[n + 1], out[n + 2] = before, after or 0
  n = n + 2
end
return out
