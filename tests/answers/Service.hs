-- A small service in Haskell whose trouble is known: MODE. "ready" on stdout when it works.
-- Exported, for GHC leaves no other names in a program.
{-# LANGUAGE ForeignFunctionInterface #-}
module Main (main, scoreDocs, keepSession, updateIndex, bookOrder, writeLedger, askPricing, cachePut) where

import Control.Concurrent
import Control.Monad
import Data.Bits
import Data.IORef
import qualified Data.ByteString as B
import qualified Data.Map as M
import Data.Word
import Foreign hiding (void)
import Foreign.C
import System.Environment
import System.Exit
import System.IO

{-# NOINLINE scoreDocs #-}
scoreDocs :: Word64 -> Int -> Word64
scoreDocs h 0 = h
scoreDocs h i = scoreDocs ((h `xor` (h `shiftR` 7)) * 1099511628211) (i - 1)

{-# NOINLINE keepSession #-}
keepSession :: IORef [B.ByteString] -> Word64 -> IO ()
keepSession all' n = do
  let s = B.replicate 16384 (fromIntegral n)
  s `seq` modifyIORef' all' (s :)
  threadDelay 2000

-- What lives is a map of 400,000 entries, of which some change.
{-# NOINLINE updateIndex #-}
updateIndex :: IORef (M.Map Word64 Word64) -> Word64 -> IO ()
updateIndex index n = modifyIORef' index (M.insert (n * 2654435761 `mod` 400000) n)

{-# NOINLINE bookOrder #-}
bookOrder :: MVar Word64 -> Word64 -> IO ()
bookOrder totals n = modifyMVar_ totals $ \sum' -> threadDelay 3000 >> (return $! sum' + n)

foreign import ccall safe "creat" c_creat :: CString -> CUInt -> IO CInt
foreign import ccall safe "pwrite" c_pwrite :: CInt -> Ptr Word8 -> CSize -> CLong -> IO CLong
foreign import ccall safe "fsync" c_fsync :: CInt -> IO CInt
foreign import ccall safe "socket" c_socket :: CInt -> CInt -> CInt -> IO CInt
foreign import ccall safe "connect" c_connect :: CInt -> Ptr Word8 -> CUInt -> IO CInt
foreign import ccall safe "read" c_read :: CInt -> Ptr Word8 -> CSize -> IO CLong
foreign import ccall safe "write" c_write :: CInt -> Ptr Word8 -> CSize -> IO CLong

{-# NOINLINE writeLedger #-}
writeLedger :: CInt -> Word64 -> IO ()
writeLedger fd n = allocaBytes 4096 $ \line -> do
  fillBytes line (fromIntegral n) 4096
  _ <- c_pwrite fd line 4096 (fromIntegral (n `mod` 64) * 4096)
  throwErrnoIfMinus1_ "fsync" $ c_fsync fd

connectTo :: Int -> IO CInt
connectTo port = do
  fd <- c_socket 2 1 0
  let address = [2, 0, fromIntegral (port `shiftR` 8), fromIntegral port, 127, 0, 0, 1] ++ replicate 8 0
  withArrayLen address $ \n a -> throwErrnoIfMinus1_ "connect" $ c_connect fd a (fromIntegral n)
  return fd

{-# NOINLINE askPricing #-}
askPricing :: CInt -> Word64 -> IO ()
askPricing fd _ = allocaBytes 64 $ \answer -> do
  fillBytes answer 32 8
  _ <- c_write fd answer 8
  got <- c_read fd answer 64
  when (got <= 0) exitFailure

{-# NOINLINE cachePut #-}
cachePut :: IORef (M.Map Word64 B.ByteString) -> Word64 -> IO ()
cachePut cache n = do
  let s = B.replicate 16384 (fromIntegral n)
  s `seq` modifyIORef' cache (M.insert (n `mod` 2048) s)

forever' :: (Word64 -> IO ()) -> IO ()
forever' work = void $ forkIO $ mapM_ work [0 ..]

main :: IO ()
main = do
  (mode : argument) <- getArgs
  case mode of
    "hot" -> do
      sink <- newIORef 0
      forever' $ \n -> modifyIORef' sink (+ scoreDocs n 20000)
    "leak" -> do
      sessions <- newIORef []
      forever' $ keepSession sessions
    "gc" -> do
      index <- newIORef $! M.fromList [(i, i) | i <- [0 .. 399999]]
      forever' $ updateIndex index
    "lock" -> do
      totals <- newMVar 0
      replicateM_ 6 $ forever' $ bookOrder totals
    "disk" -> do
      fd <- withCString (head argument) (`c_creat` 0o600)
      forever' $ writeLedger fd
    "peer" -> do
      fd <- connectTo $ read $ head argument
      forever' $ askPricing fd
    "cache" -> do
      cache <- newIORef M.empty
      -- So many that the heap has been collected several times: it has its size.
      mapM_ (cachePut cache) [0 .. 20000]
      forever' $ \n -> cachePut cache n >> threadDelay 1000
    "idle" -> return ()
    _ -> exitFailure
  putStrLn "ready"
  hFlush stdout
  forever $ threadDelay 3600000000
