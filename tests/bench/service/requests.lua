-- What wrk sends and what it says at the end, by the environment:
--   LOAD_ADDRESSES  of the servers; each thread uses one of them
--   LOAD_KIND       "get": LOAD_PATHS, a file of paths, at random; "post": a record of LOAD_BODY to LOAD_PATH
--   LOAD_PAUSE      milliseconds between an answer and the next request of a connection; empty: none
--   LOAD_KEY        a prefix that makes idempotency keys unlike those of other runs; empty: none are sent
-- Requests are put together here, since wrk.format() costs several times as much.

local addresses, threads = {}, 0
for address in os.getenv('LOAD_ADDRESSES'):gmatch('%S+') do table.insert(addresses, address) end

function setup(thread)
  local address = addresses[threads % #addresses + 1]
  local host, port = address:match('(.*):(%d+)')
  thread.addr = wrk.lookup(host, port)[1]
  thread:set('number', threads)
  thread:set('host', address)
  threads = threads + 1
end

local requests, head, tail, key, count = {}, nil, nil, nil, 0

function init()
  if os.getenv('LOAD_KIND') == 'get' then
    for path in io.lines(os.getenv('LOAD_PATHS')) do
      table.insert(requests, 'GET ' .. path .. ' HTTP/1.1\r\nHost: ' .. host .. '\r\n\r\n')
    end
    math.randomseed(number + 1)
    return
  end
  local body = os.getenv('LOAD_BODY')
  head = 'POST ' .. os.getenv('LOAD_PATH') .. ' HTTP/1.1\r\nHost: ' .. host .. '\r\nOrigin: http://' .. host ..
    '\r\nContent-Type: application/json\r\nContent-Length: ' .. #body .. '\r\n'
  tail = '\r\n\r\n' .. body
  if os.getenv('LOAD_KEY') ~= '' then key = 'Idempotency-Key: ' .. os.getenv('LOAD_KEY') .. '-' .. number .. '-' end
end

function request()
  if not head then return requests[math.random(#requests)] end
  if not key then return head .. tail:sub(3) end
  count = count + 1
  return head .. key .. count .. tail
end

if os.getenv('LOAD_PAUSE') ~= '' then
  local pause = tonumber(os.getenv('LOAD_PAUSE'))
  function delay() return pause end
end

function done(summary, latency, _)
  local errors = summary.errors
  io.write(string.format('{"requests": %d, "seconds": %.6f, "p50_ms": %.4f, "p99_ms": %.4f, "errors": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
