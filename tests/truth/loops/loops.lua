-- Loops of Lua: `lua loops.lua LOOP rate KIB_SMALL KIB_LARGE | run KIB SECONDS`.
local SLICE_S, SLICES = 0.03, 15
local loops = {}

local function numbers(kib) -- 16 bytes per entry
  local t = {}
  for i = 1, kib * 64 do t[i] = i % 1000 end
  return t
end

function loops.sum(kib)
  local t, at = numbers(kib), 1
  return function()
    local total = 0
    for i = at, math.min(at + 999, #t) do total = total + t[i] end
    at = at + 1000
    if at + 1000 > #t then at = 1 end
    return 1000
  end
end

function loops.gather(kib)
  local t, place = numbers(kib), 12345
  local n = #t
  return function()
    local total = 0
    for _ = 1, 1000 do
      place = (place * 1103515245 + 12345) & 0x7fffffffffff
      total = total + t[(place >> 8) % n + 1]
    end
    return 1000
  end
end


local function work_for(step, seconds)
  local start, done = os.clock(), 0
  local now = start
  while now - start < seconds do
    for _ = 1, 20 do done = done + step() end
    now = os.clock()
  end
  return done / (now - start)
end

local name, verb, first, second = table.unpack(arg)
local loop = loops[name]
if verb == "rate" then
  local small, large, ratios = loop(tonumber(first)), loop(tonumber(second)), {}
  work_for(small, SLICE_S)
  work_for(large, SLICE_S)
  for i = 1, SLICES do
    local before, between = work_for(small, SLICE_S), work_for(large, 2 * SLICE_S)
    ratios[i] = between / ((before + work_for(small, SLICE_S)) / 2)
  end
  table.sort(ratios)
  print(ratios[SLICES // 2 + 1])
else
  work_for(loop(tonumber(first)), tonumber(second))
end
